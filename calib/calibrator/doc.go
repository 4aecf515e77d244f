// Package calibrator maps the logits of a classifier to calibrated probabilities, and fits such maps.
//
// In come n×K logits (or probabilities) and n labels. Fit takes a method by its name and returns a Calibrator, and a
// Report that says how the fit went: the NLL before and after, whether it converged, and warnings where too few
// rows, one class or a parameter on a bound make it doubtful.
//
//	c, report, err := calibrator.Fit("temperature", calibrator.NewData(z, k, y, nil), calibrator.Options{})
//	fmt.Println(c.Describe())                      // temperature scaling, T = 2.03
//	c.Apply(p, row)                                // one row: p = softmax(row/T)
//	err = calibrator.ApplyRows(c, out, z, k, false) // a slab of rows
//	text, err := calibrator.Encode(c)              // {"version":1,"method":"temperature","temperature":2.03}
//	c, err = calibrator.Decode(text)
//
// A Calibrator is immutable, so one may serve many goroutines.
//
// Methods lists what there is and what each keeps. In short:
//
//	temperature, temperature_sbece, ensemble_temperature,       every row's class and ranking
//	parameterised_temperature, intra_order_preserving, identity
//	class_temperature, vector, matrix, dirichlet                nothing; for rows of the fitted K
//	platt, beta, isotonic, histogram, histogram_width,          the ranking of all but the top class (see Scalar)
//	scaling_binning, spline
//	metacal_miscoverage, metacal_accuracy                       nothing for rows that are given up (see MetaCal)
//	class_weights                                               nothing; made, not fitted (see ClassWeights)
//
// Each has a Fit function of its own too, which returns its own type. Start with temperature: one parameter, nothing
// to go wrong, hard to beat where rows are few. The methods with a parameter or more for each class want hundreds of
// rows a class; isotonic and the histograms want thousands of rows, and give an NLL that one wrong sure row can ruin.
// Temperature, ensemble, class-based and parameterised scaling can be wrapped in class-wise loss scaling: see
// LossScaling.
//
// Whether a fitted calibrator is better is not decided here: score it on rows that it was not fitted on.
package calibrator
