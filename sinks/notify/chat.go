package notify

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/plumbline/plumbline/pipeline/record"
)

// Formats of a webhook's body. A new one is a constant here, a case of Options.body, and a value of the key format with
// a line in docs/http.md.
const (
	formatStandard = "standard" // Standard Webhooks
	formatSlack    = "slack"    // an incoming webhook of Slack, Mattermost or Rocket.Chat
	formatTeams    = "teams"    // a workflow of Microsoft Teams that posts adaptive cards
)

// headline says what happened to an alert, in one line.
func headline(state string, a *record.Alert) string {
	of := a.Model + " " + a.Version
	if a.Slice != "" {
		of += " " + a.Slice
	}
	return fmt.Sprintf("%s: %s on %s (%s)", strings.ToUpper(state), a.Rule, of, a.Severity)
}

// link is a name and an address that a message leads to.
type link struct{ name, url string }

func (c *Options) links(a *record.Alert) []link {
	var out []link
	for _, l := range []link{{"page", c.linkTo(a)}, {"evidence", c.evidence(a)}, {"runbook", c.RunbookURL}} {
		if l.url != "" {
			out = append(out, l)
		}
	}
	return out
}

// slackText makes text inert: Slack reads these three as markup, and asks for exactly this.
var slackText = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// slack is the message of an alert. Its colour is a bar beside the text.
func (c *Options) slack(state string, a *record.Alert) ([]byte, error) {
	title, colour := slackText.Replace(headline(state, a)), "danger"
	if state != firing {
		colour = "good"
	}
	text := slackText.Replace(a.Message)
	var names []string
	for _, l := range c.links(a) {
		names = append(names, "<"+slackText.Replace(l.url)+"|"+l.name+">")
	}
	if len(names) > 0 {
		text += "\n" + strings.Join(names, " · ")
	}
	type attachment struct {
		Color    string `json:"color"`
		Fallback string `json:"fallback"`
		Title    string `json:"title"`
		Text     string `json:"text"`
		TS       int64  `json:"ts"`
	}
	return json.Marshal(map[string]any{
		"text":        title,
		"attachments": []attachment{{colour, title, a.Rule, text, a.At.Std().Unix()}},
	})
}

// teamsText makes text inert where adaptive cards read Markdown.
var teamsText = strings.NewReplacer(`\`, `\\`, "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "`", "\\`")

// teams is the message of an alert as an adaptive card.
func (c *Options) teams(state string, a *record.Alert) ([]byte, error) {
	colour := "attention"
	if state != firing {
		colour = "good"
	}
	type object = map[string]any
	body := []object{
		{"type": "TextBlock", "text": teamsText.Replace(headline(state, a)), "weight": "bolder", "color": colour,
			"wrap": true},
		{"type": "TextBlock", "text": teamsText.Replace(a.Message), "wrap": true},
		{"type": "FactSet", "facts": []object{
			{"title": "since", "value": a.Since.String()},
			{"title": "window", "value": teamsText.Replace(a.Window)},
			{"title": "rows", "value": fmt.Sprint(a.Rows)},
		}},
	}
	actions := []object{}
	for _, l := range c.links(a) {
		actions = append(actions, object{"type": "Action.OpenUrl", "title": l.name, "url": l.url})
	}
	card := object{"$schema": "http://adaptivecards.io/schemas/adaptive-card.json", "type": "AdaptiveCard",
		"version": "1.4", "body": body, "actions": actions}
	return json.Marshal(object{"type": "message", "attachments": []object{
		{"contentType": "application/vnd.microsoft.card.adaptive", "content": card}}})
}
