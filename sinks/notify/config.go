package notify

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/plumbline/plumbline/internal/setting"
)

//go:embed config.go
var configSource string

// Declaration is the file with the comments that document the keys.
func (Config) Declaration() string { return configSource }

// Config is who receives alerts.
type Config struct {
	// Address of the page for links in alerts: https://host/path; empty: no links.
	ExternalURL string `yaml:"external_url" format:"url"`
	// Address of your runbook for alarms of models: a link in every alert; empty: none.
	RunbookURL string `yaml:"runbook_url" format:"url"`
	// Base URLs of Alertmanagers (API v2). All of them receive everything.
	Alertmanagers []string `yaml:"alertmanagers" format:"url"`
	// Labels added to every alert for Alertmanager, name=value.
	Labels []string `yaml:"labels" format:"label"`
	// Wall clock between repeats of firing alerts; Alertmanager forgets an alert after four times as long.
	Resend time.Duration `yaml:"resend" default:"1m" min:"1s"`
	// Wall clock of one request.
	Timeout time.Duration `yaml:"timeout" default:"10s" min:"100ms"`
	// Wall clock for which a request to a webhook that does not answer is repeated. Then each change is tried once,
	// until the webhook answers.
	RetryFor time.Duration `yaml:"retry_for" default:"15m"`
	// Receivers of each change (docs/http.md).
	Webhooks []WebhookConfig `yaml:"webhooks"`
}

// WebhookConfig is one address that receives changes. The address may be a secret, and the key that signs is one.
type WebhookConfig struct {
	// Its address. Exactly one of url and url_file is set.
	URL string `yaml:"url" format:"url"`
	// File that holds the address, where the address is a secret.
	URLFile string `yaml:"url_file"`
	// Form of the body: Standard Webhooks, a Slack incoming webhook, or a Teams workflow that posts adaptive cards.
	Format string `yaml:"format" default:"standard" enum:"standard|slack|teams"`
	// Environment variable that holds the key for signatures: whsec_ and base64, or at least 16 bytes of other text.
	SecretEnv string `yaml:"secret_env"`
	// File that holds the key; neither secret_env nor secret_file: not signed.
	SecretFile string `yaml:"secret_file"`
	// Alert states that are sent; empty: firing and resolved. An inhibited alert counts as inhibited, whatever its
	// state; its end has the type alert.resolved.
	States []string `yaml:"states" enum:"pending|firing|resolved|inhibited"`
}

// ownLabels are those that tell alerts apart in Alertmanager.
var ownLabels = []string{"alertname", "severity", "model", "version", "slice"}

// Check implements the check of conditions between keys.
func (c Config) Check(r *setting.Report) {
	if strings.ContainsAny(c.ExternalURL, "?#") {
		r.Fail("external_url", setting.Quote(c.ExternalURL),
			"must have neither ? nor #: paths and queries are added to it")
	}
	seen := map[string]bool{}
	for i, l := range c.Labels {
		name, _, _ := strings.Cut(l, "=")
		switch {
		case slices.Contains(ownLabels, name):
			r.Fail(setting.Item("labels", i), setting.Quote(l),
				"must not be one of the alert's own labels, %s: alerts of different models would be one",
				strings.Join(ownLabels, ", "))
		case seen[name]:
			r.Fail(setting.Item("labels", i), setting.Quote(l), "must have a name that is there once")
		}
		seen[name] = true
	}
}

// Check implements the check of conditions between keys.
func (c WebhookConfig) Check(r *setting.Report) {
	if (c.URL == "") == (c.URLFile == "") {
		r.Fail("url", setting.Quote(c.URL), "exactly one of url and url_file must be set")
	}
	if c.SecretEnv != "" && c.SecretFile != "" {
		r.Fail("secret_file", setting.Quote(c.SecretFile), "only one of secret_env and secret_file may be set")
	}
}

// address is the URL, from the file where it is in one. The error names the key and the file only.
func (c WebhookConfig) address() (string, error) {
	if c.URLFile == "" {
		return c.URL, nil
	}
	u, err := setting.FromFile("notify.webhooks[].url_file", c.URLFile)
	if err == nil && !setting.IsURL(u) {
		err = fmt.Errorf("notify.webhooks[].url_file: %s: the file holds no http:// or https:// address", c.URLFile)
	}
	return u, err
}

// ReadWebhooks reads the addresses and secrets of the webhooks.
func (c Config) ReadWebhooks() ([]Webhook, error) {
	var out []Webhook
	for i, w := range c.Webhooks {
		hook := Webhook{States: w.States, Format: w.Format}
		var err error
		if hook.URL, err = w.address(); err != nil {
			return nil, err
		}
		secret, err := setting.Secret("notify.webhooks[].secret", w.SecretEnv, w.SecretFile)
		if err != nil {
			return nil, err
		}
		if secret != "" {
			if hook.Secret, err = ParseSecret(secret); err != nil {
				return nil, fmt.Errorf("notify.webhooks[%d]: its secret: %w", i, err)
			}
		}
		out = append(out, hook)
	}
	return out, nil
}
