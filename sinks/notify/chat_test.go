package notify

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/plumbline/plumbline/pipeline/record"
)

// TestChatFormats: what Slack and Teams get has the alert's words and links, and names cannot become markup.
func TestChatFormats(t *testing.T) {
	c := &Options{Config: Config{ExternalURL: "https://page", RunbookURL: "https://wiki/calibration"}}
	a := &record.Alert{Rule: "excess-ece", Model: "m<!channel>", Version: "*7*", Severity: "critical", State: firing,
		Message: "ECE is 0.1 & more [x](y)", Window: "10m", Rows: 5, At: record.At(1e18)}
	for format, want := range map[string][]string{
		formatSlack: {"m&lt;!channel&gt;", "0.1 &amp; more", "<https://wiki/calibration|runbook>", `"danger"`,
			"<https://page/?"},
		formatTeams: {`\\*7\\*`, `\\[x\\](y)`, `"url":"https://wiki/calibration"`, "AdaptiveCard", `"attention"`},
	} {
		body, err := c.body(format, a)
		if err != nil {
			t.Fatal(err)
		}
		var plain any
		if err := json.Unmarshal(body, &plain); err != nil {
			t.Fatalf("%s: %v", format, err)
		}
		var text strings.Builder
		e := json.NewEncoder(&text)
		e.SetEscapeHTML(false)
		if err := e.Encode(plain); err != nil {
			t.Fatal(err)
		}
		for _, w := range append(want, "FIRING: excess-ece on") {
			if !strings.Contains(text.String(), w) {
				t.Errorf("%s: no %q in %s", format, w, text.String())
			}
		}
		if strings.Contains(text.String(), "<!channel>") && format == formatSlack {
			t.Errorf("%s: a name calls everybody: %s", format, text.String())
		}
	}
	a.State = resolved
	if body, err := c.body(formatSlack, a); err != nil || !strings.Contains(string(body), `"good"`) {
		t.Errorf("got %s, %v", body, err)
	}
}
