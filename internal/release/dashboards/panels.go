package main

// key is the labels of a series of the chosen models; all rows, no slice.
const key = `model=~"$model",version=~"$version",window=~"$window",slice=""`

const name = "{{model}} {{version}} {{window}}"

var dashboards = []dashboard{
	{name: "fleet", title: "plumbline: fleet", what: "All models at a glance.", rows: []row{
		{"Now", []panel{
			{title: "Model versions", stat: true, unit: "short", queries: []query{
				{`count(count by (model, version) (plumbline_window_predictions{slice=""}))`, ""}}},
			{title: "Alarms firing", stat: true, unit: "short", alarm: 1, queries: []query{
				{`count(count by (model, version, slice, rule) (plumbline_alert_state{state="firing"}))` +
					` or vector(0)`, ""}}},
			{title: "Processes up", stat: true, unit: "short", queries: []query{
				{`sum(up{job="plumbline"})`, ""}}},
			{title: "Predictions a second", stat: true, unit: "reqps", queries: []query{
				{`sum(rate(plumbline_events_total{event="predictions"}[$__rate_interval]))`, ""}}},
			{title: "Oldest unread record", stat: true, unit: "s", alarm: 300, queries: []query{
				{`max(plumbline_lag_seconds)`, ""}}},
			{title: "Rows unaccounted for", stat: true, unit: "short", alarm: 1,
				what: "Anything but 0 is a defect.", queries: []query{
					{`sum(max by (partition) (abs(plumbline_rows_unaccounted)))`, ""}}},
		}},
		{"Calibration", []panel{
			{title: "Excess calibration error", unit: "percentunit",
				what: "ECE less what a calibrated model would show at the same number of rows, newest window.",
				queries: []query{{`max by (model, version) (plumbline_ece_ratio{slice="",signal="raw"}
  - plumbline_ece_null_ratio{slice="",signal="raw"})`, "{{model}} {{version}}"}}},
			{title: "Accuracy", unit: "percentunit", queries: []query{
				{`min by (model, version) (plumbline_accuracy_ratio{slice="",signal="raw"})`,
					"{{model}} {{version}}"}}},
		}},
		{"Worst", []panel{
			{title: "Worst slices by ECE", unit: "percentunit", queries: []query{
				{`topk(10, max by (model, version, slice) (plumbline_ece_lower_ratio{signal="raw"}))`,
					"{{model}} {{version}} {{slice}}"}}},
			{title: "Predictions of the newest windows", unit: "short", queries: []query{
				{`sum by (model, version) (plumbline_window_predictions{slice=""})`, "{{model}} {{version}}"}}},
			{title: "Alarms", unit: "short", queries: []query{
				{`sum by (model, version, rule, state) (plumbline_alert_state)`,
					"{{model}} {{version}} {{rule}} {{state}}"}}},
		}},
	}},
	{name: "model", title: "plumbline: model", what: "One model: is its confidence true?", byModel: true, rows: []row{
		{"Calibration", []panel{
			{title: "ECE of the model, with its 95 % interval", unit: "percentunit", queries: []query{
				{`plumbline_ece_ratio{` + key + `,signal="raw"}`, name},
				{`plumbline_ece_lower_ratio{` + key + `,signal="raw"}`, name + " lower"},
				{`plumbline_ece_upper_ratio{` + key + `,signal="raw"}`, name + " upper"},
				{`plumbline_ece_null_ratio{` + key + `,signal="raw"}`, name + " if calibrated"}}},
			{title: "ECE, raw and calibrated", unit: "percentunit", queries: []query{
				{`plumbline_ece_ratio{` + key + `}`, name + " {{signal}}"}}},
			{title: "Class-wise ECE", unit: "percentunit",
				what: "Of each class's probability, on average. Tells what ECE hides where positives are few.",
				queries: []query{
					{`plumbline_cwece_ratio{` + key + `}`, name + " {{signal}}"}}},
		}},
		{"Confidence and accuracy", []panel{
			{title: "Mean confidence and accuracy", unit: "percentunit",
				what: "A calibrated model has both equal.", queries: []query{
					{`plumbline_mean_confidence_ratio{` + key + `,signal="raw"}`, name + " confidence"},
					{`plumbline_accuracy_ratio{` + key + `,signal="raw"}`, name + " accuracy"}}},
			{title: "NLL", unit: "short", queries: []query{
				{`plumbline_nll_nats{` + key + `}`, name + " {{signal}}"}}},
			{title: "Brier score", unit: "short", queries: []query{
				{`plumbline_brier_score{` + key + `}`, name + " {{signal}}"}}},
		}},
		{"Labels", []panel{
			{title: "Labelled rows and predictions of the window", unit: "short", queries: []query{
				{`plumbline_window_labelled_rows{` + key + `,signal="raw"}`, name + " labelled"},
				{`plumbline_window_predictions{` + key + `}`, name + " predictions"}}},
			{title: "Label coverage", unit: "percentunit", queries: []query{
				{`plumbline_label_coverage_ratio{` + key + `}`, name}}},
			{title: "Delay of labels", unit: "s", queries: []query{
				{`plumbline_label_lag_seconds{` + key + `}`, name + " p{{percentile}}"}}},
		}},
		{"Decisions", []panel{
			{title: "Alarms", unit: "short", queries: []query{
				{`sum by (rule, slice, state) (plumbline_alert_state{model=~"$model",version=~"$version"})`,
					"{{rule}} {{slice}} {{state}}"}}},
			{title: "Calibrator in force", unit: "short", what: "Revision; 0 is the identity.", queries: []query{
				{`plumbline_calibrator_revision{model=~"$model",version=~"$version"}`, "{{model}} {{version}}"}}},
			{title: "Newest refit", unit: "short", queries: []query{
				{`plumbline_refit_state{model=~"$model",version=~"$version"}`,
					"{{model}} {{version}} {{reason}}: {{result}}"}}},
		}},
		{"Before labels", []panel{
			{title: "Distance of confidences from their reference, over its threshold", unit: "short",
				what: "Beyond 1 it is no noise.", queries: []query{
					{`plumbline_confidence_distance{` + key + `,score="msp"} / plumbline_confidence_distance_threshold`,
						name + " {{distance}}"}}},
			{title: "Estimated accuracy", unit: "percentunit", queries: []query{
				{`plumbline_estimated_accuracy_ratio{` + key + `}`, name + " {{method}}"}}},
		}},
		{"Slices", []panel{
			{title: "ECE by slice, lower end of its interval", unit: "percentunit", queries: []query{
				{`topk(20, plumbline_ece_lower_ratio{model=~"$model",version=~"$version",window=~"$window",` +
					`signal="raw"})`, name + " {{slice}}"}}},
		}},
	}},
	{name: "pipeline", title: "plumbline: pipeline", what: "The processes: do they keep up, do they lose nothing?",
		rows: []row{
			{"Rows", []panel{
				{title: "Rows a second", unit: "reqps", queries: []query{
					{`sum by (reason) (rate(plumbline_events_total{event="rows"}[$__rate_interval]))`, "{{reason}}"}}},
				{title: "Fates a second", unit: "reqps", queries: []query{
					{`sum by (event) (rate(plumbline_events_total{event=~"joined|inline|unlabelled|expired|orphans|` +
						`evicted|late|duplicates|rejected"}[$__rate_interval]))`, "{{event}}"}}},
				{title: "Predictions that got a label, of an hour", unit: "percentunit",
					what: "Of those whose label came, or can come no more. The alerts compare it with an objective.",
					queries: []query{{`1 - (sum(rate(plumbline_events_total{event="expired"}[1h])) or vector(0))
  / sum(rate(plumbline_events_total{event=~"expired|joined|inline"}[1h]))`, "labelled"}}},
				{title: "Refused", unit: "reqps", what: "Dead letters and rejected rows, by reason.", queries: []query{
					{`sum by (event, reason) (rate(plumbline_events_total{event=~"dead_letters|rejected"}` +
						`[$__rate_interval])) or vector(0)`, "{{event}} {{reason}}"}}},
			}},
			{"Keeping up", []panel{
				{title: "Age of the oldest unread record", unit: "s", queries: []query{
					{`max by (task, input) (plumbline_lag_seconds)`, "{{task}} {{input}}"}}},
				{title: "Unread records", unit: "short", queries: []query{
					{`sum by (task, input) (plumbline_lag_offsets)`, "{{task}} {{input}}"}}},
				{title: "Since the last checkpoint", unit: "s", queries: []query{
					{`time() - min by (task) (plumbline_task_saved_timestamp_seconds)`, "{{task}}"}}},
			}},
			{"Latency", []panel{
				{title: "Of a record, 95 % are faster", unit: "s",
					what: "From its timestamp until a task takes it, and the work of the task. Dots are traces.",
					queries: []query{{`histogram_quantile(0.95, sum by (task, step, le)
  (rate(plumbline_latency_seconds_bucket{step=~"wait|process"}[$__rate_interval])))`, "{{task}} {{step}}"}}},
				{title: "Of a checkpoint, 95 % are faster", unit: "s",
					what: "Its writing, and from its oldest record's timestamp until then. Dots are traces.",
					queries: []query{{`histogram_quantile(0.95, sum by (task, step, le)
  (rate(plumbline_latency_seconds_bucket{step=~"save|total"}[$__rate_interval])))`, "{{task}} {{step}}"}}},
			}},
			{"State", []panel{
				{title: "Rows that wait", unit: "short", queries: []query{
					{`sum by (kind) (plumbline_waiting_rows)`, "{{kind}}"}}},
				{title: "Rows that wait in the fullest shard, of the most", unit: "percentunit",
					what: "At 100 % rows are pushed out before their label comes.", queries: []query{
						{`max(sum by (partition) (max by (partition, kind) (plumbline_waiting_rows))) / ` +
							`min(plumbline_join_max_rows)`, "fullest shard"}}},
				{title: "Tasks", unit: "short", queries: []query{
					{`count by (task) (count by (task, partition) (plumbline_task_caught_up))`, "{{task}}"},
					{`sum(plumbline_task_failing)`, "failing"}}},
				{title: "Free disk", unit: "percentunit", queries: []query{
					{`plumbline_disk_free_bytes / plumbline_disk_size_bytes`, "{{instance}} {{dir}}"}}},
			}},
			{"Processes", []panel{
				{title: "Processor", unit: "percentunit", what: "1 is one core.", queries: []query{
					{`rate(process_cpu_seconds_total{job="plumbline"}[$__rate_interval])`, "{{instance}}"}}},
				{title: "Memory", unit: "bytes", queries: []query{
					{`process_resident_memory_bytes{job="plumbline"}`, "{{instance}} resident"},
					{`go_gc_gomemlimit_bytes{job="plumbline"} < 2^62 or process_resident_memory_bytes{job="plumbline"}`,
						"{{instance}} limit"}}},
				{title: "History behind", unit: "short", queries: []query{
					{`plumbline_history_behind_offsets`, "{{instance}}"}}},
			}},
		}},
	{name: "training", title: "plumbline: training", what: "Heads: requests, jobs, the archive that they train on.",
		rows: []row{
			{"Requests", []panel{
				{title: "Requests by state", unit: "short", queries: []query{
					{`sum by (model, state) (plumbline_finetune_jobs)`, "{{model}} {{state}}"}}},
				{title: "Progress", unit: "percentunit", queries: []query{
					{`plumbline_finetune_progress_ratio`, "{{model}} {{version}} on {{trainer}}"}}},
				{title: "Attempts of running jobs", unit: "short", queries: []query{
					{`plumbline_finetune_attempts`, "{{model}} {{version}}"}}},
			}},
			{"Trainers", []panel{
				{title: "Since a running job's last sign of life", unit: "s", queries: []query{
					{`plumbline_finetune_silent_seconds`, "{{model}} {{version}} on {{trainer}}"}}},
				{title: "Shadow rows a second", unit: "reqps", queries: []query{
					{`sum by (event) (rate(plumbline_events_total{event=~"shadow_.*"}[$__rate_interval]))`,
						"{{event}}"}}},
			}},
			{"Archive", []panel{
				{title: "Rows", unit: "short", queries: []query{{`plumbline_archive_rows`, "{{instance}}"}}},
				{title: "Bytes", unit: "bytes", queries: []query{{`plumbline_archive_bytes`, "{{instance}}"}}},
				{title: "Rows that wait for their file", unit: "short", queries: []query{
					{`sum by (kind) (plumbline_archive_waiting_rows)`, "{{kind}}"}}},
				{title: "Failures", unit: "short", alarm: 1, queries: []query{
					{`plumbline_archive_failures_total`, "{{instance}}"}}},
			}},
		}},
}
