// Command dashboards writes the dashboards of deploy/grafana. Their panels are the table in panels.go.
//
//	dashboards DIR        writes DIR/NAME.json
//	dashboards -queries   prints each query on a line, every variable set to "all", for a check on a real Prometheus
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: dashboards DIR | -queries")
		os.Exit(2)
	}
	if os.Args[1] == "-queries" {
		for _, q := range queries() {
			fmt.Println(q)
		}
		return
	}
	for _, d := range dashboards {
		text, err := d.json()
		if err == nil {
			err = os.WriteFile(filepath.Join(os.Args[1], d.name+".json"), text, 0o644)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "dashboards:", err)
			os.Exit(1)
		}
	}
}

// queries are those of all panels, as Prometheus gets them where every variable is "all".
func queries() []string {
	all := strings.NewReplacer("$model", ".*", "$version", ".*", "$window", ".*", "$__rate_interval", "1m")
	var out []string
	for _, d := range dashboards {
		for _, r := range d.rows {
			for _, p := range r.panels {
				for _, q := range p.queries {
					out = append(out, strings.Join(strings.Fields(all.Replace(q.expr)), " "))
				}
			}
		}
	}
	return out
}

// dashboard is a page; each of its rows fills the width.
type dashboard struct {
	name, title, what string
	byModel           bool // variables for model, version and window
	rows              []row
}

type row struct {
	title  string
	panels []panel
}

// panel is a graph, or one number where stat is set.
type panel struct {
	title, what string
	unit        string // of Grafana: percentunit, s, bytes, reqps, short …
	stat        bool
	alarm       float64 // a stat is red from here on; 0: never
	queries     []query
}

type query struct{ expr, legend string }

// object is a part of Grafana's JSON model.
type object = map[string]any

var source = object{"type": "prometheus", "uid": "${datasource}"}

func (d *dashboard) json() ([]byte, error) {
	const columns, statHeight, graphHeight = 24, 4, 8
	var panels []object
	y := 0
	add := func(p object, x, w, h int) {
		p["id"] = len(panels) + 1
		p["gridPos"] = object{"x": x, "y": y, "w": w, "h": h}
		panels = append(panels, p)
	}
	for _, r := range d.rows {
		add(object{"type": "row", "title": r.title, "collapsed": false, "panels": []object{}}, 0, columns, 1)
		y++
		h, width := statHeight, columns/len(r.panels)
		for _, p := range r.panels {
			if !p.stat {
				h = graphHeight
			}
		}
		for i, p := range r.panels {
			add(p.json(), i*width, width, h)
		}
		y += h
	}
	return json.MarshalIndent(object{
		"uid":           "plumbline-" + d.name,
		"title":         d.title,
		"description":   d.what,
		"tags":          []string{"plumbline"},
		"schemaVersion": 39,
		"editable":      true,
		"refresh":       "30s",
		"time":          object{"from": "now-6h", "to": "now"},
		"timezone":      "browser",
		"links": []object{{"type": "dashboards", "tags": []string{"plumbline"}, "title": "plumbline",
			"asDropdown": true, "keepTime": true, "includeVars": true}},
		"templating":  object{"list": d.variables()},
		"annotations": object{"list": d.annotations()},
		"panels":      panels,
	}, "", " ")
}

func (d *dashboard) variables() []object {
	out := []object{{"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Prometheus"}}
	if !d.byModel {
		return out
	}
	for _, v := range []struct{ name, of string }{
		{"model", "plumbline_window_predictions"},
		{"version", `plumbline_window_predictions{model=~"$model"}`},
		{"window", `plumbline_window_predictions{model=~"$model"}`},
	} {
		ask := fmt.Sprintf("label_values(%s, %s)", v.of, v.name)
		out = append(out, object{"name": v.name, "type": "query", "datasource": source, "definition": ask,
			"query": object{"query": ask, "refId": v.name}, "refresh": 2, "multi": true, "includeAll": true,
			"allValue": ".*", "sort": 1, "current": object{"text": "All", "value": "$__all"}})
	}
	return out
}

// annotations mark when alarms fired.
func (d *dashboard) annotations() []object {
	where := `state="firing"`
	if d.byModel {
		where += `,model=~"$model",version=~"$version"`
	}
	return []object{{"name": "alarms", "enable": true, "datasource": source, "iconColor": "red",
		"expr":        "plumbline_alert_state{" + where + "}",
		"titleFormat": "{{rule}} {{model}} {{version}} {{slice}}"}}
}

func (p *panel) json() object {
	var targets []object
	for i, q := range p.queries {
		target := object{"refId": string(rune('A' + i)), "datasource": source, "expr": q.expr,
			"legendFormat": q.legend, "instant": p.stat, "range": !p.stat}
		if strings.Contains(q.expr, "_bucket{") { // histograms have exemplars: trace ids
			target["exemplar"] = true
		}
		targets = append(targets, target)
	}
	steps := []object{{"color": "green", "value": nil}}
	if p.alarm != 0 {
		steps = append(steps, object{"color": "red", "value": p.alarm})
	}
	defaults := object{
		"unit":       p.unit,
		"thresholds": object{"mode": "absolute", "steps": steps},
		"custom":     object{"lineWidth": 1, "fillOpacity": 0, "showPoints": "never"},
	}
	out := object{
		"type": "timeseries", "title": p.title, "description": p.what, "datasource": source, "targets": targets,
		"fieldConfig": object{"defaults": defaults, "overrides": []object{}},
		"options": object{"legend": object{"displayMode": "list", "placement": "bottom", "showLegend": true},
			"tooltip": object{"mode": "multi", "sort": "desc"}},
	}
	if p.stat {
		out["type"] = "stat"
		out["options"] = object{"reduceOptions": object{"calcs": []string{"lastNotNull"}}, "colorMode": "value"}
	}
	return out
}
