// Package drift is the stage that describes predictions before their labels come, for each key.
//
// It keeps a reference, either the first rows or a rolling window. The reference holds counts by bin of every
// confidence score, of labelled rows by outcome, and of classes. From the reference and a window's predictions it
// derives distances of the scores and of the predicted classes, estimates of accuracy and ECE with their assumptions,
// and the class shares. It adds these to snapshots (stage.Key.Shows). It also gives rules the map of confidences and
// the labelled reference (stage.Estimator), and proposes class weights to refits when the shares have moved
// (stage.Corrector).
//
// It decides nothing and publishes nothing. Methods and assumptions are described in calib/detect/unlabelled and
// calib/shift.
package drift
