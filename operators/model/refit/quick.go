package refit

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/plumbline/plumbline/calib/acc"
	"github.com/plumbline/plumbline/calib/calibrator"
	"github.com/plumbline/plumbline/calib/kernel"
	"github.com/plumbline/plumbline/operators/model/stage"
	"github.com/plumbline/plumbline/pipeline/record"
)

// The first answer to a change is a temperature, or a mixture of it with the scores as they are and a constant. It
// needs few rows, it never changes the predicted class, and it is fitted anew after every part of a pane, so every row
// is first a test and then part of the fit. When its rows have doubled it is refined. Refit runs with richer methods
// follow.
//
// A tracker has the temperature T of the newest rows of all classes, and forecasts every row before it learns from it.
// Its evidence against the calibrator in force is the ratio of their likelihoods,
//
//	R ← (R + n/h)·Π_{the n rows of a part of a pane} p_T(y_i)/p_in force(y_i)
//
// with h = fresh_rows. T is published when the mean of the trackers' R reaches 1/α; then every R is 0 again. The null
// hypothesis is that the calibrator in force is right: P(y_i = y | past, scores) = p_in force(y). Under it the mean of
// a ratio is Σ_y p_T(y) = 1, whatever T learnt from the past, so R - (rows so far)/h is a martingale whose mean starts
// at 0 after each publication, and
//
//	E[publications among n rows] ≤ α·n/h,  for every n, at any number of looks
//
// (Shin, Ramdas, Rinaldo, E-detectors; docs/math.md, Theorem 1). Where the calibrator in force is wrong, this says
// nothing: a temperature then takes force only after its forecasts had log(1/α) nats less loss in total.
//
// A stream that turns after each publication would cost the same again and again. What it can cost in all, account
// bounds.

const (
	// trackers is the number of temperatures, of trackedRows[i] rows.
	trackers = 3
	// leastTracked is the least number of rows of a temperature.
	leastTracked = 100
	// trackedScores limits the scores that a fit reads.
	trackedScores = 1 << 21
	// richRows is how many rows the evidence against a calibrator with more parameters must last; that against a
	// temperature or the identity, leastTracked. Every turn of the latest turnRows rows multiplies it by turnFactor. To
	// give up more parameters counts as richTurns turns. mostPatience is the most against a temperature: a wrong one
	// must not stay.
	richRows     = 350
	turnRows     = 40_000
	keptTurns    = 12
	turnFactor   = 1.5
	richTurns    = 3
	mostPatience = 1000
)

var trackedRows = [trackers]int{300, 1000, 4000}

// quick is the first answer of a version. It proposes what the publisher may put into force.
type quick struct {
	*publisher
	base     int     // revision that the trackers are tested against
	weight   float64 // largest row weight of earlier panes
	trackers [trackers]tracker
	// A turn is a publication that takes back what the one before it did. Where a stream turns often, what is better
	// now will soon be worse: with every turn the evidence for a temperature must last longer.
	rows  int64   // so far
	turns []int64 // numbers of the rows of the latest turns
	up    int     // whether the latest temperature was above that before it (1), or below (-1); 0 = not known

	fits effort
}

// effort counts the fits and the rows that they were made on, since the process started.
type effort struct{ number, rows int }

func (e *effort) add(rows int) { e.number, e.rows = e.number+1, e.rows+rows }

// turn notes n turns.
func (q *quick) turn(n int) {
	for range n {
		q.turns = append(q.turns, q.rows)
	}
	q.turns = q.turns[max(0, len(q.turns)-keptTurns):]
}

// replaced begins anew with f in force.
func (q *quick) replaced(f *stage.InForce, revision int) {
	if takenBack(f) {
		q.turn(1)
	}
	if q.base = revision; f == nil || f.Reason != reasonQuick {
		q.up = 0
	}
	q.restart()
}

// patience returns the number of rows that the evidence for temperature t instead of the calibrator in force must last,
// the direction of the change, and for how many turns it counts.
func (q *quick) patience(current calibrator.Calibrator, t float64) (rows int64, up, turns int) {
	q.turns = slices.DeleteFunc(q.turns, func(row int64) bool { return row < q.rows-turnRows })
	old, rich := 1.0, current != nil && !isIdentity(current)
	if c, ok := current.(interface{ T() float64 }); ok {
		old, rich = c.T(), false
	}
	up = 1
	if t < old {
		up = -1
	}
	factor := math.Pow(turnFactor, float64(len(q.turns)))
	switch {
	case rich:
		return int64(richRows * factor), up, richTurns
	case q.up*up < 0:
		factor, turns = factor*turnFactor, 1
	}
	return int64(min(leastTracked*factor, mostPatience)), up, turns
}

// tracker is the temperature of the newest rows, and its evidence.
type tracker struct {
	number int
	t      float64 // 0 = none yet
	due    int     // rows until the next fit
	logR   float64
	// gain is the gain since its last minimum (a CUSUM), over the rows since the prediction time from: the estimated
	// time of the change.
	gain       float64
	from, rows int64
}

func newQuick(p *publisher) *quick {
	q := &quick{publisher: p}
	for i := range q.trackers {
		q.trackers[i].number = i
	}
	q.restart()
	return q
}

// restart forgets the evidence.
func (q *quick) restart() {
	for i := range q.trackers {
		t := &q.trackers[i]
		t.logR, t.gain, t.rows = math.Inf(-1), 0, 0
	}
}

// evidence returns the logarithm of the mean R.
func (q *quick) evidence() float64 {
	sum := math.Inf(-1)
	for i := range q.trackers {
		sum = logAdd(sum, q.trackers[i].logR)
	}
	return sum - math.Log(trackers)
}

// logAdd returns log(e^a + e^b).
func logAdd(a, b float64) float64 {
	if a < b {
		a, b = b, a
	}
	if math.IsInf(b, -1) {
		return a
	}
	return a + math.Log1p(math.Exp(b-a))
}

// convinced returns the trackers whose evidence has reached the level and has lasted long enough, those with the most
// first; none if the mean of all has not reached the level.
func (q *quick) convinced(current calibrator.Calibrator, alpha float64) (out []*tracker) {
	if !(q.evidence() >= math.Log(1/alpha)) {
		return nil
	}
	for i := range q.trackers {
		t := &q.trackers[i]
		if n, _, _ := q.patience(current, t.t); t.rows >= n && t.logR >= math.Log(1/alpha) {
			out = append(out, t)
		}
	}
	slices.SortStableFunc(out, func(a, b *tracker) int { return cmp.Compare(b.logR, a.logR) })
	return out
}

// again reports whether a tracker whose answer was refused is tried again after a pane of n rows: not before a tenth of
// its rows has come, because an attempt reads all of them.
func (t *tracker) again(n int64) bool {
	step := int64(max(trackedRows[t.number]/10, leastTracked))
	return t.rows/step > (t.rows-n)/step
}

// answersFirst reports whether the configuration lets a temperature take force by itself: not where a calibrator must
// first be served to nobody, or to few.
func (c *Config) answersFirst() bool {
	return c.FirstAnswer && (c.Method == methodAuto || c.Method == "temperature") && c.CanaryShare == 0 &&
		c.ShadowFor == 0
}

// stepQuick publishes a first answer to a pane's rows, if there is one. The current run has compared with another.
func stepQuick(s *State, in *stage.Pane) (published bool, err error) {
	rows := judging(s.version.Newest(), in.Rows)
	if !s.stage.cfg.answersFirst() || s.pin != nil || s.run.busy() || len(rows) == 0 {
		return false, nil
	}
	if s.quick == nil {
		s.quick = newQuick(s.publisher)
	}
	a, err := s.quick.step(rows, in.End)
	if a == nil || err != nil {
		return false, err
	}
	if s.run != nil {
		if err := s.end("a temperature took force meanwhile", in.End); err != nil {
			return false, err
		}
	}
	return true, s.quick.publish(a, in.End)
}

// step tests the trackers on a pane's rows, fits them anew, and returns an answer if the evidence is there.
func (q *quick) step(rows []acc.SampleRow, now int64) (*quickAnswer, error) {
	cfg, v := &q.stage.cfg, q.version
	if rev := v.InForceRevision(); q.base != rev {
		q.replaced(v.Newest(), rev)
	}
	before := q.convinced(inForce(v), cfg.Alpha)
	for left := rows; len(left) > 0; {
		part := left[:partOf(len(rows), len(left))]
		left = left[len(part):]
		if err := q.bet(part, float64(max(cfg.FreshRows, leastTracked))); err != nil {
			return nil, err
		}
		q.weight, q.rows = max(q.weight, maxWeight(part)), q.rows+int64(len(part))
		if err := q.learn(without(q.sampled(), left), len(part)); err != nil {
			return nil, err
		}
	}
	if q.account.resting() {
		return nil, nil
	}
	convinced := q.convinced(inForce(v), cfg.Alpha)
	convinced = slices.DeleteFunc(convinced, func(t *tracker) bool {
		return slices.Contains(before, t) && !t.again(int64(len(rows)))
	})
	if a, err := q.answer(convinced, now); a != nil || err != nil {
		return a, err
	}
	return q.refine(len(rows), now)
}

// judging returns the rows that may be evidence against the calibrator in force. Class weights came before labels:
// those of rows of before them tell of the shares that have moved since.
func judging(f *stage.InForce, rows []acc.SampleRow) []acc.SampleRow {
	if f != nil && weighsClasses(f.Cal) {
		return rowsSince(rows, f.From)
	}
	return rows
}

// paneParts is the most parts of a pane. After each the trackers learn, so that a pane of many rows both shows a change
// and proves what answers it.
const paneParts = 5

// partOf returns how many of the rows left of a pane of n are its next part.
func partOf(n, left int) int {
	size := max(leastTracked, (n+paneParts-1)/paneParts)
	if left < 2*size {
		return left
	}
	return size
}

// without returns a key, to be read, whose sample has the rows of k but for these. Both are in order.
func without(k *stage.Key, rows []acc.SampleRow) *stage.Key {
	if len(rows) == 0 {
		return k
	}
	out := *k
	out.Sample = make([]acc.SampleRow, 0, len(k.Sample))
	for i := range k.Sample {
		for len(rows) > 0 && stage.CompareRows(rows[0], k.Sample[i]) < 0 {
			rows = rows[1:]
		}
		if len(rows) == 0 || stage.CompareRows(rows[0], k.Sample[i]) > 0 {
			out.Sample = append(out.Sample, k.Sample[i])
		}
	}
	return &out
}

// bet tests the trackers on rows that they have not learnt from. The NLL of the calibrator in force is capped, which
// only lowers a ratio, so that no single row decides.
func (q *quick) bet(rows []acc.SampleRow, h float64) error {
	was, err := q.bounded().appendNLLs(nil, inForce(q.version), rows)
	if err != nil {
		return err
	}
	for i := range q.trackers {
		t := &q.trackers[i]
		if t.t == 0 {
			continue
		}
		t.logR = logAdd(t.logR, math.Log(float64(len(rows))/h))
		if t.gain <= 0 {
			t.gain, t.rows = 0, 0
		}
		now, err := nllsAt(rows, t.t)
		if err != nil {
			return err
		}
		for j := range rows {
			t.bet(rows[j].TS, unitOf(float64(rows[j].W), q.weight)*(was[j]-now[j]))
		}
	}
	return nil
}

// nllsAt are the NLLs of rows at a temperature, by the block kernel: good to 1e-6, and a tenth of the cost of scoring
// each row with a calibrator.
func nllsAt(rows []acc.SampleRow, t float64) ([]float64, error) {
	const block = 128
	out, z := make([]float64, 0, len(rows)), []float32(nil)
	var scored [block]kernel.Row
	for part := range slices.Chunk(rows, block) {
		z = z[:0]
		for i := range part {
			z = append(z, part[i].Z...)
		}
		kernel.LogitRows(scored[:len(part)], nil, z, len(part[0].Z), t)
		for i := range part {
			r, row := &scored[i], &part[i]
			if !r.OK {
				return nil, errors.New("sampled logits are not finite")
			}
			out = append(out, r.LogSum()+(float64(row.Z[r.Arg])-float64(row.Z[row.Y]))/t)
		}
	}
	return out, nil
}

func (t *tracker) bet(ts int64, gain float64) {
	if t.rows == 0 {
		t.from = ts
	}
	t.rows++
	t.from = min(t.from, ts)
	t.gain += gain
	t.logR += gain
}

// learn fits the trackers anew for which a tenth of their rows has come since the last time.
func (q *quick) learn(k *stage.Key, rows int) error {
	for i := range q.trackers {
		t := &q.trackers[i]
		if t.due -= rows; t.due > 0 {
			continue
		}
		latest := rowsAt(k, newestOfClasses(k, trackedRows[i]))
		if len(latest) < leastTracked {
			continue
		}
		near, err := calibrator.NewTemperature(cmp.Or(t.t, 1))
		if err != nil {
			return err
		}
		cal, _, err := calibrator.FitTemperatureNear(dataOf(latest, k.K), near)
		if err != nil {
			return fmt.Errorf("temperature of %d rows: %w", len(latest), err)
		}
		q.fits.add(len(latest))
		t.t, t.due = cal.T(), len(latest)/10
	}
	return nil
}

// mixtureGain is how many nats a mixture must gain over a temperature, on the rows that both were fitted on: two more
// parameters gain one nat by chance.
const mixtureGain = 4

// mapOf returns what takes force after a fit of a temperature to rows: that, or a mixture of it with the scores as they
// are and a constant where that suits the rows better (wrong labels, scores that are noise in part).
func mapOf(t calibrator.Temperature, rows []acc.SampleRow, of capped, cfg *Config) (calibrator.Calibrator, error) {
	if cfg.Method != methodAuto {
		return t, nil
	}
	mixture, _, err := calibrator.FitEnsemble(dataOf(rows, of.k), calibrator.Options{})
	if err != nil {
		return t, fmt.Errorf("mixture on %d rows: %w", len(rows), err)
	}
	gain := 0.0
	err = pair{of, t, mixture}.each(rows, func(_ *acc.SampleRow, was, now stage.RowScore) {
		gain += was.NLL - now.NLL
	})
	if err != nil || gain < mixtureGain {
		return t, err
	}
	return mixture, nil
}

// temperatureOf is the temperature that may take force, to the last digits.
func temperatureOf(rows []acc.SampleRow, k int) (calibrator.Temperature, error) {
	cal, _, err := calibrator.FitTemperature(dataOf(rows, k), calibrator.Options{})
	if err != nil {
		return cal, fmt.Errorf("temperature of %d rows: %w", len(rows), err)
	}
	return cal, nil
}

func dataOf(rows []acc.SampleRow, k int) calibrator.Data[float32] {
	z, y, w := fitOn(rows, k)
	return calibrator.NewData(z, k, y, w)
}

// fitOn is what calibrators are fitted to: the scores, labels and weights of rows. Where the model is right about every
// row, the likelihood only grows as confidences go to 1, and the next mistake would be served as impossible. Then
// there is one row more, a mistake: the row of median margin, labelled with the class next to its top one.
func fitOn(rows []acc.SampleRow, k int) (z []float32, y []int32, w []float64) {
	z, y, w = make([]float32, 0, (len(rows)+1)*k), make([]int32, 0, len(rows)+1), make([]float64, 0, len(rows)+1)
	for i := range rows {
		z, y, w = append(z, rows[i].Z...), append(y, rows[i].Y), append(w, float64(rows[i].W))
	}
	if m := mistakeOf(rows); m.row != nil {
		z, y, w = append(z, m.row.Z...), append(y, m.next), append(w, float64(m.row.W))
	}
	return z, y, w
}

// mistakeOf is the row of median margin; its row is nil where the model is wrong about a row, or there is none.
func mistakeOf(rows []acc.SampleRow) (m rowMargin) {
	var margins []rowMargin
	for i := range rows {
		x := marginOf(&rows[i])
		if x.top != rows[i].Y {
			return m
		}
		margins = append(margins, x)
	}
	if len(margins) == 0 {
		return m
	}
	slices.SortFunc(margins, func(a, b rowMargin) int {
		return cmp.Or(cmp.Compare(a.margin, b.margin), stage.CompareRows(*a.row, *b.row))
	})
	return margins[len(margins)/2]
}

// rowMargin is the top class of a row, the one next to it, and how far that is below.
type rowMargin struct {
	row       *acc.SampleRow
	top, next int32
	margin    float32
}

func marginOf(row *acc.SampleRow) rowMargin {
	m := rowMargin{row: row, next: 1}
	if row.Z[1] > row.Z[0] {
		m.top, m.next = 1, 0
	}
	for j := int32(2); int(j) < len(row.Z); j++ {
		switch z := row.Z[j]; {
		case z > row.Z[m.top]:
			m.top, m.next = j, m.top
		case z > row.Z[m.next]:
			m.next = j
		}
	}
	m.margin = row.Z[m.top] - row.Z[m.next]
	return m
}

// answer returns the first of the trackers' temperatures that keeps the bounds of the configuration on the rows since
// the change.
func (q *quick) answer(trackers []*tracker, now int64) (*quickAnswer, error) {
	for _, t := range trackers {
		fit, nats := newestOfClasses(q.sampled(), trackedRows[t.number]), math.Log(1/q.stage.cfg.Alpha)
		// The tracker's temperature is near that of the fit. If it is refused, there is no need for one.
		near, err := calibrator.NewTemperature(t.t)
		if err != nil {
			return nil, err
		}
		ok, err := q.gains(near, fit, nats)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		a, err := q.newAnswer(fit, t.from, nats, now)
		if err != nil {
			return nil, err
		}
		if a == nil {
			continue
		}
		_, up, turns := q.patience(inForce(q.version), a.t.T())
		if turns > 0 {
			if lasts, err := q.lasts(a); err != nil || !lasts {
				return nil, err
			}
		}
		q.up = up
		q.turn(turns)
		q.changes.note(t.from)
		return a, nil
	}
	return nil, nil
}

// refine fits a first answer anew when the rows since its change have doubled, n of them in this pane, and returns that
// if it is better by more than chance on them. It is of the same rows and of as many more, so there is nothing that it
// must prove first, unless the stream turns: then they are of several regimes.
func (q *quick) refine(n int, end int64) (*quickAnswer, error) {
	f, k := q.version.Newest(), q.sampled()
	if f == nil || f.Reason != reasonQuick || len(q.turns) > 0 {
		return nil, nil
	}
	since, before, now := q.changes.latest(), 0, 0
	for i := range k.Sample {
		switch ts := k.Sample[i].TS; {
		case ts < since:
		case ts < f.From:
			before++
			fallthrough
		default:
			now++
		}
	}
	// Each time that they have doubled, it is tried once.
	doubled := func(n int) int { return bits.Len(uint(n / max(before, leastTracked))) }
	if doubled(now) <= max(doubled(max(0, now-n)), 1) {
		return nil, nil
	}
	return q.newAnswer(newestOfClasses(k, now), since, refineGain, end)
}

// refineGain is how many nats a first answer must gain when it is fitted anew. One parameter more gains half a nat by
// chance.
const refineGain = 2

// quickAnswer is a first answer that may take force.
type quickAnswer struct {
	fit     []acc.SampleRow
	t       calibrator.Temperature
	cal     calibrator.Calibrator
	encoded []byte
	c       comparison // on the rows since then
	since   int64      // estimated time of the change
}

// newAnswer fits a first answer to rows. It returns nil where that is not likely to gain on later rows: where it breaks
// the bounds of the configuration on the rows since a change, gains less than so many nats on those of the fit, which
// are of all classes, may lose in the next run of a class, or where labels of a class are withheld. A mixture takes
// force where the temperature alone gains so much too, or where a mixture is in force: that is beyond any temperature,
// and must be refined by its like.
func (q *quick) newAnswer(at []int, since int64, nats float64, now int64) (*quickAnswer, error) {
	cfg, k := &q.stage.cfg, q.sampled()
	fit := rowsAt(k, at)
	slices.SortFunc(fit, stage.CompareRows)
	if why, err := stage.Biased(k, since, stage.SettledSince); why != "" || err != nil {
		if err == nil {
			err = q.withhold("no calibrator takes force at once after a change", why, now)
		}
		return nil, err
	}
	t, err := temperatureOf(fit, k.K)
	if err != nil {
		return nil, err
	}
	q.fits.add(len(fit))
	_, mixed := inForce(q.version).(*calibrator.Ensemble)
	if !mixed {
		if ok, err := q.gains(t, at, nats); err != nil || !ok {
			return nil, err
		}
	}
	a := &quickAnswer{fit: fit, t: t, since: since}
	cal, err := mapOf(t, fit, q.bounded(), cfg)
	if err != nil {
		return nil, err
	}
	if a.encoded, err = calibrator.Encode(cal); err != nil {
		return nil, err
	}
	if a.cal, err = calibrator.Decode(a.encoded); err != nil {
		return nil, err
	}
	if mixed || cal != calibrator.Calibrator(t) {
		if ok, err := q.gains(a.cal, at, nats); err != nil || !ok {
			return nil, err
		}
	}
	if a.c, err = q.pairOf(a.cal).compare(rowsSince(k.Sample, since)); err != nil || !a.c.allowed(cfg) {
		return nil, err
	}
	return a, nil
}

// gains reports whether a calibrator gains enough on rows of all classes, and is likely to gain in the next run of one.
// at are their places in the sample.
func (q *quick) gains(cal calibrator.Calibrator, at []int, nats float64) (bool, error) {
	cfg, k := &q.stage.cfg, q.sampled()
	was, err := q.lossesOf(q.version.Newest()).of(k, inForce(q.version), q.bound())
	if err != nil {
		return false, err
	}
	rows := rowsAt(k, at)
	now, err := q.bounded().nllsOf(cal, rows)
	if err != nil {
		return false, err
	}
	gain, weight, byClass := 0.0, 0.0, newClassGains(k.K)
	for i, j := range at {
		x, w := was[j]-now[i], float64(rows[i].W)
		byClass.add(rows[i].Y, x)
		gain, weight = gain+w*x, weight+w
	}
	return gain >= nats*cmp.Or(q.weight, 1) && gain >= cfg.MinNLLGain*weight &&
		worstRuns(k.Sample, byClass.means(), max(cfg.FreshRows, leastValidation)) >= 0, nil
}

// nllsOf are the NLLs of rows, with the bound of the tests.
func (b capped) nllsOf(cal calibrator.Calibrator, rows []acc.SampleRow) (out []float64, err error) {
	if t, ok := cal.(calibrator.Temperature); ok {
		out, err = nllsAt(rows, t.T())
		for i := range out {
			out[i] = min(out[i], b.bound)
		}
		return out, err
	}
	return b.appendNLLs(nil, cal, rows)
}

// publish puts a first answer into force.
func (q *quick) publish(a *quickAnswer, now int64) error {
	d := record.Calibrator{Reason: reasonQuick, Method: a.cal.Method(), Evidence: q.evidenceOf(a, now)}
	e := &d.Evidence
	what := fmt.Sprintf("temperature %.4g", a.t.T())
	if a.cal.Method() != "temperature" {
		what = "mixture around " + what
	}
	if t := a.t.T(); t < calibrator.MinTemperature*1.001 || t > calibrator.MaxTemperature*.999 {
		e.OnBound, what = true, what+" (the bound)"
	}
	d.Outcome = fmt.Sprintf("published: %s of %d rows, NLL %.5f → %.5f, ECE %.4f → %.4f on the %d since about %s",
		what, e.FitRows, e.NLLInForce, e.NLLNew, e.ECEInForce, e.ECENew, e.TestRows, record.At(a.since).About())
	q.restart()
	q.unit = q.weight
	return q.putInForce(&d, a.cal, a.encoded, now)
}

// lasts reports whether the outlook of an answer is positive. The sample is cut at the changes that are known, so that
// a fault that came once and is gone is not taken for a stream that turns to and fro.
func (p *publisher) lasts(a *quickAnswer) (bool, error) {
	o, err := p.newOutlook()
	if err != nil {
		return false, err
	}
	low, err := o.of(a.cal, &sampleLosses{}, gained{a.c.inForce.mean() - a.c.itself.mean(), a.c.inForce.w, a.since,
		append(slices.Clip(p.changes), a.since)})
	return low > 0, err
}

// comparison is what a calibrator in force and another make of some rows. newest is the gain of the other on the
// newest of them.
type comparison struct {
	rows            int
	inForce, itself score
	paired
	newest float64
}

func (p pair) compare(rows []acc.SampleRow) (c comparison, err error) {
	err = p.each(rows, func(row *acc.SampleRow, was, now stage.RowScore) {
		w, gain := float64(row.W), was.NLL-now.NLL
		c.inForce.add(was, w)
		c.itself.add(now, w)
		c.paired.add(w, gain)
		if c.rows++; c.rows > len(rows)-newestRows {
			c.newest += w * gain
		}
	})
	return c, err
}

// allowed reports whether the other calibrator keeps the bounds of the configuration, and is not worse on the newest
// rows.
func (c *comparison) allowed(cfg *Config) bool {
	return c.rows >= leastTracked && c.newest >= 0 && c.inForce.mean()-c.itself.mean() >= cfg.MinNLLGain &&
		c.itself.ece() <= c.inForce.ece()+cfg.MaxECERise && c.itself.acc() >= c.inForce.acc()-cfg.MaxAccuracyDrop
}

// evidenceOf is the evidence for an answer, at the end of a label pane.
func (q *quick) evidenceOf(a *quickAnswer, now int64) record.Evidence {
	alpha, fit, c := q.stage.cfg.Alpha, a.fit, &a.c
	diff, se := c.diff(&c.itself)
	return record.Evidence{
		FitRows:     len(fit),
		FitFrom:     record.At(fit[0].TS),
		FitTo:       record.At(fit[len(fit)-1].TS),
		FitBegan:    record.At(now),
		FitDigest:   digestRows(fit),
		TestRows:    c.rows,
		TestTo:      record.At(now),
		NLLInForce:  c.inForce.mean(),
		NLLNew:      c.itself.mean(),
		NLLDiff:     diff,
		NLLDiffSE:   se,
		ECEInForce:  c.inForce.ece(),
		ECENew:      c.itself.ece(),
		AccInForce:  c.inForce.acc(),
		AccNew:      c.itself.acc(),
		LogE:        stage.FiniteOrZero(q.evidence()),
		LogENeeded:  math.Log(1 / alpha),
		Alpha:       alpha,
		NLLBound:    q.bound(),
		Temperature: a.t.T(),
	}
}
