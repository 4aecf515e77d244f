// Package drift follows, for one key, what can be said of predictions before their labels come.
//
// It keeps a reference: the first rows, or a rolling one, as counts by bin of every confidence score, of labelled rows
// by outcome, and of classes. From it and a window's predictions follow distances of the scores and of the predicted
// classes, estimates of accuracy and ECE with their assumptions, and the shares of the classes. It adds them to
// snapshots (stage.Key.Shows), gives the map of confidences and the labelled reference to rules on estimates
// (stage.Estimator), and proposes class weights to refits where the shares have moved (stage.Corrector).
//
// It decides nothing and publishes nothing. Methods and assumptions are in calib/detect/unlabelled and calib/shift.
package drift
