package table

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// Names that other tools give to the columns of docs/schema.md, by preference. They are compared folded; see fold.
var (
	logitNames = []string{"logits", "logit", "y_logits", "y_logit", "pred_logits", "raw_scores", "decision_function",
		"margin"}
	probNames = []string{"probs", "prob", "probabilities", "probability", "proba", "probas", "y_prob", "y_probs",
		"y_proba", "y_probas", "y_pred_proba", "y_pred_prob", "y_pred_probs", "pred_proba", "pred_prob", "pred_probs",
		"predict_proba", "predicted_proba", "predicted_probability", "predicted_probabilities", "prediction_proba",
		"prediction_probas", "prediction_prob", "prediction_probs", "prediction_probability",
		"prediction_probabilities", "softmax", "p"}
	// Of these the values say whether they are logits or probabilities.
	scoreNames = []string{"scores", "score", "y_scores", "y_score", "outputs", "output", "predictions", "prediction",
		"y_pred", "y_hat", "class"}
	labelNames = []string{"label", "labels", "label_ids", "label_id", "y_true", "target", "targets", "y", "y_test",
		"true_label", "true_class", "ground_truth", "actual", "truth", "class"}
	timeNames = []string{"ts", "timestamp", "time", "datetime", "date", "event_time", "event_timestamp", "created_at"}
	idNames   = []string{"id", "prediction_id", "request_id", "inference_id", "identifier", "uuid"}
	// A weight of training is one of evaluation too: sample_weight is scikit-learn's name.
	weightNames = []string{"weight", "sample_weight"}
)

// isScoreName reports whether scores have the name.
func isScoreName(name string) bool {
	f := fold(name)
	return slices.Contains(logitNames, f) || slices.Contains(probNames, f) || slices.Contains(scoreNames, f)
}

// isClassNames reports whether the names of the classes have the name: what is no column of rows.
func isClassNames(name string) bool {
	return slices.Contains([]string{"classes", "class_names", "classnames", "target_names", "label_names"}, fold(name))
}

// fold makes names comparable: lower case, and one underscore for every other sign.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return '_'
	}, strings.TrimSpace(name))
}

// isIndex reports whether a column is the index of a DataFrame.
func isIndex(name string) bool {
	return name == "" || strings.HasPrefix(name, "Unnamed: ") || strings.HasPrefix(name, "__index_level_")
}

// indexed says whether name is prefix_i.
func indexed(name, prefix string) (int, bool) {
	s, ok := strings.CutPrefix(name, prefix+"_")
	if !ok {
		return 0, false
	}
	i, err := strconv.Atoi(s)
	return i, err == nil && i >= 0
}

// suffix is what follows prefix in name: prefix_cat, prefix.cat, prefix[cat]; and prefix0, of numbers alone.
func suffix(name, prefix string) (string, bool) {
	if len(name) <= len(prefix) || fold(name[:len(prefix)]) != fold(prefix) {
		return "", false
	}
	rest := name[len(prefix):]
	if number(rest) {
		return rest, true
	}
	if inner, ok := strings.CutPrefix(rest, "["); ok {
		inner, ok = strings.CutSuffix(inner, "]")
		return inner, ok && inner != ""
	}
	return rest[1:], strings.ContainsRune("_.- :", rune(rest[0])) && len(rest) > 1
}

// number reports whether s is a number of a class.
func number(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == "" && len(s) < 8
}

// quoteNames lists names of a file for a message: not all of thousands, none at length, nothing that is no text.
func quoteNames(names []string) string {
	const most = 24
	var out []string
	for i, name := range names {
		if i == most {
			out = append(out, "… ("+strconv.Itoa(len(names)-most)+" more)")
			break
		}
		out = append(out, quoteName(name))
	}
	return strings.Join(out, ", ")
}

func quoteName(name string) string {
	const longest = 48
	if r := []rune(name); len(r) > longest {
		name = string(r[:longest]) + "…"
	}
	plain := func(r rune) bool { return unicode.IsPrint(r) && r != unicode.ReplacementChar }
	if name == "" || slices.ContainsFunc([]rune(name), func(r rune) bool { return !plain(r) }) {
		return strconv.QuoteToASCII(name)
	}
	return name
}
