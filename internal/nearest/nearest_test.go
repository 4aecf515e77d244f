package nearest

import "testing"

func TestOf(t *testing.T) {
	names := []string{"kafka", "topics", "windows", "rules", "http"}
	for name, want := range map[string]string{
		"kafak": "kafka", "Kafka": "kafka", "kafk": "kafka", "windwos": "windows", "rulez": "rules", "htpt": "http",
		"zzzzz": "", "": "", "checkpoints": "",
	} {
		if got := Of(name, names); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}
