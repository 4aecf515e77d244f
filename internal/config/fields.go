package config

import (
	"math"
	"reflect"
	"strings"
	"time"
)

// field is what is known of one key: its meaning, and the values that it may have by itself.
// Conditions between keys are in cross.go.
type field struct {
	doc string
	// lo and hi bound numbers and durations (in nanoseconds); above excludes lo itself.
	lo, hi float64
	above  bool
	enum   []string
	// pattern is a regular expression for a text; required forbids the empty text or list.
	pattern  string
	required bool
}

// refitMethods are those of calib/calibrator, as a test of cmd/plumbline checks.
var refitMethods = []string{"auto", "none", "identity", "temperature", "temperature_sbece", "ensemble_temperature", "class_temperature",
	"parameterised_temperature", "vector", "matrix", "dirichlet", "intra_order_preserving", "platt", "beta", "isotonic", "histogram", "histogram_width",
	"scaling_binning", "spline", "metacal_miscoverage", "metacal_accuracy", "temperature+cls", "ensemble_temperature+cls", "class_temperature+cls",
	"parameterised_temperature+cls"}

const (
	maxRows     = 1e9
	maxDuration = float64(366 * 24 * time.Hour)
)

func number(doc string, lo, hi float64) field { return field{doc: doc, lo: lo, hi: hi} }
func positive(doc string, hi float64) field   { return field{doc: doc, hi: hi, above: true} }
func duration(doc string, lo time.Duration) field {
	return field{doc: doc, lo: float64(lo), hi: maxDuration}
}
func text(doc string) field                    { return field{doc: doc, lo: math.Inf(-1), hi: math.Inf(1)} }
func needed(doc string) field                  { f := text(doc); f.required = true; return f }
func oneOf(doc string, values ...string) field { return field{doc: doc, enum: values} }
func named(doc, pattern string, required bool) field {
	return field{doc: doc, pattern: pattern, required: required}
}

const (
	topicPattern = `^[a-zA-Z0-9._-]{1,249}$`
	namePattern  = `^[a-zA-Z0-9._-]{1,100}$`
	maxNLL       = 1000 // nats
	urlPattern   = `^https?://[^\s]+$`
)

// fields describes every key by its path; list items have "[]" after the list's key.
// A test holds it against the struct: no key without an entry, no entry without a key.
var fields = withHistory(withFinetune(map[string]field{
	"kafka":                    text("How to reach the brokers."),
	"kafka.brokers":            needed("First brokers to ask, host:port."),
	"kafka.brokers[]":          needed("host:port."),
	"kafka.client_id":          needed("Name that the brokers log and count quotas by."),
	"kafka.fetch_max_bytes":    number("Most bytes fetched per partition and request; at least message_max_bytes.", 1024, 1<<30),
	"kafka.session_timeout":    duration("Session of the consumer groups: partitions of a process from which the broker has heard nothing for so long go to others. Longer for starved machines; the broker allows group.min.session.timeout.ms, 6s, to group.max.session.timeout.ms, 30m.", 6*time.Second),
	"kafka.message_max_bytes":  number("Largest message that is decoded or produced; larger ones go to the dead-letter topic.", 1024, 1<<30),
	"kafka.tls":                text("Encryption to the brokers."),
	"kafka.tls.enabled":        text("Connect by TLS."),
	"kafka.tls.ca_file":        text("PEM file of the authorities to trust; empty: the system's."),
	"kafka.tls.cert_file":      text("PEM file of the certificate to show the brokers; empty: none."),
	"kafka.tls.key_file":       text("PEM file of its private key."),
	"kafka.sasl":               text("Authentication by password. The password never stands in this file."),
	"kafka.sasl.mechanism":     oneOf("PLAIN shows the broker the password: use it with TLS only.", SASLPlain, SASLScramSHA256, SASLScramSHA512),
	"kafka.sasl.username":      text("User name; empty: no authentication."),
	"kafka.sasl.password_env":  text("Environment variable that holds the password."),
	"kafka.sasl.password_file": text("File that holds the password; a line feed at its end is not part of it."),
	"kafka.replication":        number("Replication factor of topics that `topics create` makes.", 1, 32767),
	"kafka.partitions":         number("Partitions of topics that `topics create` makes; logits and labels always have the same number.", 1, 100_000),

	"topics":                text("Topic names, all different."),
	"topics.logits":         named("Predictions: Arrow IPC streams.", topicPattern, true),
	"topics.labels":         named("Late labels, partitioned as the logits; empty: labels travel with the logits.", topicPattern, false),
	"topics.panes":          named("Increments from shards to model tasks.", topicPattern, true),
	"topics.snapshots":      named("Window metrics, JSON.", topicPattern, true),
	"topics.calibrators":    named("Calibrators with their evidence, JSON, compacted.", topicPattern, true),
	"topics.alerts":         named("Alerts, JSON, compacted.", topicPattern, true),
	"topics.decisions":      named("Every decision, calibrator, alert and head with its evidence, JSON, kept for ever: what the history is rebuilt from; empty: not written.", topicPattern, false),
	"topics.finetune":       named("Requests for new heads, JSON; used where trigger.enabled is true.", topicPattern, false),
	"topics.heads":          named("Heads, jobs, verdicts and orders, JSON, compacted; used where trigger.enabled or heads.shadow is true.", topicPattern, false),
	"topics.calibrated":     named("Calibrated probabilities; used where calibrated.enabled is true.", topicPattern, false),
	"topics.deadletter":     named("Messages that could not be read, as they came.", topicPattern, true),
	"topics.checkpoints":    named("Checkpoints, compacted; used where checkpoints.store is topic.", topicPattern, false),
	"topics.logits_unkeyed": named("Predictions of producers that cannot split batches by id, such as plumbline.logits-unkeyed: the repartition stage sends them to topics.logits; empty: none.", topicPattern, false),
	"topics.labels_unkeyed": named("Labels of such producers: the repartition stage sends them to topics.labels; empty: none.", topicPattern, false),

	"group": named("Prefix of the consumer groups and of the checkpoints.", namePattern, true),

	"models":           text("Models whose number of classes is fixed beforehand; others are taken with that of their first message."),
	"models[]":         text("One model."),
	"models[].name":    needed("Model name, as in the messages."),
	"models[].classes": number("Number of classes K, 2 or more; 0: that of the first message.", 0, 1_000_000),

	"slices":           text("Cohorts that get statistics of their own."),
	"slices.columns":   text("Text columns whose values are cohorts."),
	"slices.columns[]": needed("Column name."),
	"slices.max_keys":  number("Values of a column, by model version, that have statistics of their own: those with the most predictions. The rest are pooled as ~other and counted.", 1, 1_000_000),
	"slices.half_life": duration("Event time after which the counts of predictions that choose the values are halved.", time.Minute),

	"event_time":                  text("Panes and lateness; event time unless said otherwise."),
	"event_time.pane":             duration("Length of a pane, the grain of all windows.", 100*time.Millisecond),
	"event_time.allowed_lateness": duration("How much later than the newest row a row may come and still count in its own pane.", 0),
	"event_time.max_ahead":        duration("A row further ahead of its Kafka timestamp is rejected and counted.", 0),
	"event_time.idle_timeout":     duration("Wall clock: an input without messages for so long holds the watermark back no more; 0: it always does.", 0),
	"event_time.forget_after":     duration("A model version without rows for so long, while another version of the model has some, is forgotten: its statistics end, what is in force stays. A pause of the whole model counts as a day at most; while its labels may come by join.wait it is not forgotten. 0: never.", 0),

	"join":              text("Predictions that wait for their label."),
	"join.wait":         duration("Event time that a prediction waits.", 0),
	"join.max_rows":     number("Waiting rows of a shard; when full, the oldest goes out and is counted. One on disk takes about 20 bytes of memory.", 1, maxRows),
	"join.memory_bytes": number("About how much memory of a shard the latest of them may take, 160 bytes and the scores each; the others are on disk; 0: all are in memory.", 0, 1<<40),
	"join.dir":          text("Directory for those on disk, worth nothing after a restart; up to the size of all rows that come within join.wait. Empty: work in checkpoints.dir; better a local one where that is on a network."),
	"join.remember":     number("Joined rows of a shard, also those that brought their label, whose ids are known until join.wait is over (45 bytes each): repeats of them, and further labels, are counted and change nothing; 0: a repeat counts as new.", 0, maxRows),

	"stats":                  text("Accumulators and metrics."),
	"stats.bins":             number("Bins of the reliability diagram and of ECE; divides 3600.", 1, 3600),
	"stats.extra_bins":       text("Numbers of bins of further ECEs; each divides 3600."),
	"stats.extra_bins[]":     number("Number of bins.", 1, 3600),
	"stats.soft_bins":        number("Soft bins of SB-ECE.", 1, 1000),
	"stats.soft_temperature": positive("Temperature T of the soft bins.", 100),
	"stats.cdf_nu":           positive("Width ν of the smoothed confidence CDF.", 10),
	"stats.resamples":        number("Resamples behind the null expectation and the interval of ECE.", 20, 100_000),

	"sample":                text("Bounded sample of labelled rows, chosen by hash of the id."),
	"sample.rows_per_cell":  number("Most rows of one cell (key, label pane, prediction pane).", 1, 1_000_000),
	"sample.bytes_per_cell": number("Most bytes of one cell; at most kafka.message_max_bytes.", 0, 1<<30),
	"sample.rows":           number("Latest sampled rows that a model task keeps by key; at least refit.max_rows.", 1, 10_000_000),

	"windows":         text("Windows that snapshots are taken of. A list here replaces the default list."),
	"windows[]":       text("One window."),
	"windows[].name":  named("Name in snapshots and metrics; each once.", namePattern, true),
	"windows[].kind":  oneOf("time: by prediction time; rows: the latest label panes with enough labelled rows.", KindTime, KindRows),
	"windows[].size":  duration("Kind time: length, a multiple of event_time.pane.", 0),
	"windows[].slide": duration("Kind time: distance between starts, a multiple of event_time.pane that divides size; absent: size.", 0),
	"windows[].rows":  number("Kind rows: labelled rows at least.", 0, maxRows),
	"windows[].every": number("Kind rows: labelled rows between windows; = rows: tumbling; absent: at each pane.", 0, maxRows),

	"alarm":                   text("Anytime-valid alarm on calibration error, for every model version and slice: it may be looked at all the time, and false alarms stay within the bound."),
	"alarm.enabled":           text("Watch."),
	"alarm.signals":           needed("What to watch: raw is the model's own confidence, calibrated what the calibrator in force gives; accuracy is a fall of the model's accuracy, foretold by its confidences or not. With both of the former, the alarm on raw is inhibited while a calibrator is in force."),
	"alarm.signals[]":         oneOf("Signal.", "raw", "calibrated", "accuracy"),
	"alarm.epsilon_ece":       positive("Tolerance: the alarm says that the ECE was above it.", 0.5),
	"alarm.epsilon_bin":       positive("Tolerance of every single bin, or so says the alarm's second test.", 0.5),
	"alarm.epsilon_accuracy":  positive("Tolerance: the alarm on accuracy says that it was further than this below that of the reference, the first reference_rows rows unless reference is rolling.", 0.5),
	"alarm.bins":              number("Bins of both tests; divides 3600.", 2, 60),
	"alarm.false_alarm_every": duration("Event time between false alarms of a model version, on average at least; its signals share it equally.", time.Second),
	"alarm.severity":          oneOf("Severity label of the alert: info, warning or critical.", "info", "warning", "critical"),
	"alarm.accuracy_severity": oneOf("Severity label of the alert on accuracy.", "info", "warning", "critical"),
	"alarm.max_weight":        positive("Largest weight that a row may have; larger ones break the bound on false alarms. Give each of g predictions with one outcome weight 1/g.", 1e9),
	"alarm.matured":           duration("0: rows enter as their labels come. Else so long after their prediction, no less than the longest delay: for labels whose delay depends on whether the model was right.", 0),
	"alarm.reference":         oneOf("none: the error itself. pinned: its change against the curve of the first reference_rows rows; rolling: of the reference_rows rows before.", "none", "pinned", "rolling"),
	"alarm.reference_rows":    number("Labelled rows of the reference curve, and of the reference accuracy: of every slice its own.", 100, maxRows),
	"alarm.slack":             number("Standard errors of the reference that the tolerance of a bin, or of accuracy, is widened by.", 0, 10),
	"alarm.slices":            text("Watch every slice too."),
	"alarm.fdr":               positive("Share of false alarms among the slices of a model version that alarm, in expectation at most (e-BH).", 0.5),
	"alarm.clear_rows":        number("Fewest rows since the alarm that can show that the error is back inside the tolerance.", 1, maxRows),
	"alarm.clear_for":         duration("Event time that they must show it for.", 0),
	"alarm.quiet_rows":        number("Rows without another alarm that resolve it too; 0: they never do.", 0, maxRows),
	"alarm.hold":              duration("Event time that an alert of any rule stays inhibited after the alert that inhibits it is over.", 0),

	"unlabelled":                text("What snapshots of windows by time say of predictions before their labels come: distances of confidence scores from a reference, estimates of accuracy."),
	"unlabelled.enabled":        text("Say it."),
	"unlabelled.reference":      oneOf("pinned: the first reference_rows rows; rolling: replaced by the next as many.", "pinned", "rolling"),
	"unlabelled.reference_rows": number("Predictions, and labelled rows, of the reference.", 100, maxRows),
	"unlabelled.alpha":          positive("Level of the thresholds of distances: the share of windows over them if nothing changes.", 0.5),
	"unlabelled.slices":         text("For every slice too."),
	"unlabelled.classes":        oneOf("Count rows by predicted class, for distances of class shares and label-shift estimates: of no key, of model versions, or of every slice too.", "none", "model", "slices"),

	"rules":          text("Alarms on a value over a threshold for a while, with hysteresis. A list here replaces the default list."),
	"rules[]":        text("One rule."),
	"rules[].name":   named("Name in alerts and metrics; each once.", namePattern, true),
	"rules[].signal": oneOf("calibrated: what the calibrator in force gives; raw: the model's own confidence.", "calibrated", "raw"),
	"rules[].kind": oneOf("What the value is. excess: ECE less what a calibrated model would show at this n. reference: how much worse measure is than in a reference window. "+
		"distance: of a confidence score's distribution from the reference, before labels. estimate: measure, estimated before labels. threshold: measure itself.", "excess", "reference", "distance", "estimate", "threshold"),
	"rules[].measure": oneOf("Of kind excess: ece. reference: ece (debiased), smece, accuracy, nll, curve (largest change of a bin). distance: ks, psi, wasserstein, js. "+
		"estimate: accuracy (its fall), ece, miss (estimate less truth, once labels come). "+
		"threshold: accuracy, nll, ece (debiased), smece, confidence (mean), coverage (share of predictions with a label at the age).",
		"ece", "smece", "accuracy", "nll", "curve", "ks", "psi", "wasserstein", "js", "miss", "confidence", "coverage"),
	"rules[].score":          oneOf("Kind distance: confidence score; class: the shares of the predicted classes, with measures psi and js.", "msp", "margin", "negent", "class"),
	"rules[].reference":      oneOf("Kinds reference and distance. pinned: the first reference_rows rows; rolling: the reference_rows rows before the window.", "pinned", "rolling"),
	"rules[].reference_rows": number("Rows of the reference.", 100, maxRows),
	"rules[].alpha":          positive("Kind distance: the value counts only above what it exceeds with this probability if nothing has changed.", 0.5),
	"rules[].rows":           number("Judged on the latest label panes with at least this many rows: labelled ones, or predictions where the value is of those.", 1, maxRows),
	"rules[].min_rows":       number("Not judged below; at most rows.", 1, maxRows),
	"rules[].warmup_rows":    number("Labelled rows of the key before the rule may fire.", 0, maxRows),
	"rules[].fire":           positive("Value above which the rule is pending, if it is significant; side below: below which. At most 1, but for measure nll of kind threshold.", maxNLL),
	"rules[].clear":          number("Value below which it resolves; less than fire. Side below: above which; more than fire.", 0, maxNLL),
	"rules[].for":            duration("Event time above fire before it fires.", 0),
	"rules[].clear_for":      duration("Event time below clear before it resolves.", 0),
	"rules[].severity":       oneOf("Severity label of the alert: info, warning or critical.", "info", "warning", "critical"),
	"rules[].side":           oneOf("Kind threshold: on which side of fire it fires, for errors above, for accuracy and coverage below.", "above", "below"),
	"rules[].interval":       text("Kind threshold: it fires only where the whole 95 % interval of the value is beyond fire."),
	"rules[].age":            duration("Measure coverage: of predictions at least so old; 0: join.wait.", 0),
	"rules[].slices":         text("Judge every slice too."),

	"refit":                   text("When and how calibrators are refitted. A candidate is published only if it is better on rows that come after those it was fitted on."),
	"refit.method":            oneOf("Calibrator to fit; auto: a few of them, by classes and rows; none: never refit.", refitMethods...),
	"refit.period":            duration("Event time between refits; 0: not by period, else at least event_time.pane.", 0),
	"refit.on_alarm":          text("Refit when the alarm or a rule fires."),
	"refit.fresh_rows":        number("Sampled rows since the alarm's start that a refit on alarm waits for; at most max_rows.", 0, 10_000_000),
	"refit.min_rows":          number("No refit with fewer sampled rows; at most max_rows.", 10, 10_000_000),
	"refit.max_rows":          number("Latest sampled rows that a refit uses.", 10, 10_000_000),
	"refit.test_share":        number("Newest share of them, never fitted on: the first that candidates are scored on.", 0.05, 0.9),
	"refit.delay":             number("Label panes after which a fit is due: only then is its result looked at, and a model whose fit takes longer waits.", 1, 10_000),
	"refit.workers":           number("Fits at a time in this process; 0: half of the processors. No result depends on it.", 0, 1024),
	"refit.alpha":             positive("Published where the anytime-valid paired test on NLL rejects \"not better\" at this level, split over the candidates.", 0.5),
	"refit.validation_rows":   number("A validation that has proved nothing on so many rows ends without a change; 0: with the next refit.", 0, 1e9),
	"refit.validation_for":    duration("Or after so much event time; 0: with the next refit.", 0),
	"refit.min_nll_gain":      number("And NLL falls by at least so many nats: a difference that nobody would notice is not worth a publication.", 0, 10),
	"refit.max_ece_rise":      number("And ECE rises by no more.", 0, 1),
	"refit.max_accuracy_drop": number("And accuracy drops by no more.", 0, 1),
	"refit.shadow_for":        duration("Event time for which a candidate is at least scored only.", 0),
	"refit.canary_share":      number("Share of the ids that get a candidate before all others; 0: no canary.", 0, 0.9),
	"refit.canary_for":        duration("Event time for which they have it alone.", 0),
	"refit.rollback_panes":    number("The calibrator in force is tested against the one before it, the latest three that a change replaced, and the identity, and taken back where one is better: by mistake once in so many label panes, or more seldom. 0: never.", 0, 1e12),
	"refit.cooldown":          duration("Event time between refits on alarm.", 0),
	"refit.label_shift": oneOf("Where predictions say that shares of classes have moved, and the test of label shift passes: off: nothing; candidate: class weights on the calibrator in force are validated as a refit's candidate is, once labels come; "+
		"at_once: they are put into force before labels. The class on top of a row may change.", "off", "candidate", "at_once"),
	"refit.online": text("Run online Platt scaling with calibeating on top of the calibrator in force; snapshots show how it does."),

	"calibrated":         text("Stream of calibrated probabilities."),
	"calibrated.enabled": text("Write topics.calibrated."),
	"calibrated.columns": oneOf("probs: all K; top1: the class and its confidence.", "probs", "top1"),

	"archive":               text("Labelled rows with features, as Arrow files for fine-tuning (docs/operations.md, The archive)."),
	"archive.directory":     text("Directory that the files are put into, on storage that all processes of the group share, or one each; empty: no archive, and features do not wait for labels."),
	"archive.features":      oneOf("float16: half the memory and disk, at three significant digits; rows with a feature beyond ±65504 are left out and counted; float32: as they come.", FeaturesHalf, FeaturesSingle),
	"archive.logits":        text("Write the logits or probabilities too."),
	"archive.roll_rows":     number("A file is complete with so many rows,", 1, maxRows),
	"archive.roll_bytes":    number("or so many bytes,", 1024, 1<<40),
	"archive.roll_time":     duration("or so much event time after its first label.", time.Second),
	"archive.max_bytes":     number("Most bytes of the directory; the files of the oldest labels go first; 0: no bound.", 0, 1<<50),
	"archive.max_age":       duration("Event time between a file's newest label and the newest of its model version from which the file goes; 0: never.", 0),
	"archive.memory_bytes":  number("Most bytes of rows in memory a shard, of all files that are open.", 1<<10, 1<<40),
	"archive.pending_bytes": number("Complete files of a shard that could not be written to the directory before when_full holds; 0: no bound.", 0, 1<<50),
	"archive.when_full":     oneOf("Where there is no room on disk: wait: the shard stands still and loses nothing; drop: rows are left out of the archive and counted.", WhenFullWait, WhenFullDrop),

	"notify":                        text("Whom to tell of alerts. The processes that run model tasks share the work; without alertmanagers and webhooks there is none."),
	"notify.external_url":           text("Where people reach the page, for links in alerts: https://host/path; empty: no links."),
	"notify.alertmanagers":          text("Alertmanagers (API v2), all of which are told everything."),
	"notify.alertmanagers[]":        named("Base URL.", urlPattern, true),
	"notify.labels":                 text("Labels added to every alert for Alertmanager."),
	"notify.labels[]":               named("name=value.", `^[a-zA-Z_][a-zA-Z0-9_]*=.+$`, true),
	"notify.resend":                 duration("Wall clock between tellings of what fires; Alertmanager forgets an alert that it does not hear of for four times as long.", time.Second),
	"notify.timeout":                duration("Wall clock of one request.", 100*time.Millisecond),
	"notify.retry_for":              duration("Wall clock before a webhook that does not answer is given up; then each change is tried once until it answers.", 0),
	"notify.webhooks":               text("Addresses that are told each change once at least, as Standard Webhooks has it (docs/api.md)."),
	"notify.webhooks[]":             text("One webhook."),
	"notify.webhooks[].url":         named("Its address; or", urlPattern, false),
	"notify.webhooks[].url_file":    text("File that holds the address, where that is a secret."),
	"notify.webhooks[].secret_env":  text("Environment variable that holds the key that signs, whsec_ and base64 or 16 bytes of other text at least; or"),
	"notify.webhooks[].secret_file": text("File that holds it; neither: not signed."),
	"notify.webhooks[].states":      text("Of pending, firing, resolved and inhibited; empty: firing and resolved. What another alert inhibits is inhibited in every state."),
	"notify.webhooks[].states[]":    oneOf("State.", "pending", "firing", "resolved", "inhibited"),

	"checkpoints":          text("Where and how often state is saved."),
	"checkpoints.store":    oneOf("directory: checkpoints.dir; topic: topics.checkpoints, compacted, for processes that share no directory.", StoreDirectory, StoreTopic),
	"checkpoints.dir":      needed("Directory, kept over restarts; on storage that all processes of the group share."),
	"checkpoints.interval": duration("Wall clock between checkpoints; outputs become visible at checkpoints.", 10*time.Millisecond),
	"checkpoints.rows":     number("A checkpoint before the interval is over, once a shard has taken so many rows; 0: by time only.", 0, 1e12),
	"checkpoints.keep":     number("Checkpoints kept; the previous one is used if the newest is damaged.", 2, 100),

	"http":                 text("Page, API and metrics."),
	"http.listen":          text("host:port to listen on; empty: off."),
	"http.web_config_file": text("File with TLS and users in the format of Prometheus exporters; empty: plain HTTP for everyone who can connect."),
	"http.metrics_slices":  number("Slices of a model version and window that /metrics has: those that fire, then the worst. The API has all.", 1, 10_000),
	"http.pprof":           text("Serve Go profiles at /debug/pprof/ too; they tell about the process to whoever can reach the port."),
	"http.control":         text("Take pause and resume, orders about calibrators and heads, and the cancelling of trainings over HTTP, from whoever can reach the port and is let in by web_config_file."),

	"shutdown_timeout": duration("Wall clock for the last checkpoints after SIGTERM; then the process ends with exit code 1, and the records since the checkpoints before are read again.", time.Second),
}))

var durationType = reflect.TypeFor[time.Duration]()

// keyOf is the YAML key of a struct field.
func keyOf(f reflect.StructField) string {
	key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	return key
}

// join appends a key to a path.
func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
