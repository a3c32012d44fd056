package skill

import (
	"cmp"
	"math"
	"slices"
)

// Brier returns the mean squared difference between probabilities and outcomes;
// less is better. It panics if the lengths differ and returns NaN for no
// forecasts.
func Brier(probability []float64, happened []bool) float64 {
	if len(probability) != len(happened) {
		panic(badLength)
	}
	sum := 0.0
	for i, p := range probability {
		sum += (p - indicator(happened[i])) * (p - indicator(happened[i]))
	}
	return sum / float64(len(probability))
}

func indicator(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// A ReliabilityBin compares forecasts of about one probability with how often
// the thing happened.
type ReliabilityBin struct {
	Forecast float64 `json:"forecast"` // mean probability in the bin
	Observed float64 `json:"observed"` // relative frequency
	Count    int     `json:"count"`
}

// Reliability sorts forecasts into so many bins of equal width over 0..1 and
// leaves out empty ones.
func Reliability(probability []float64, happened []bool, bins int) []ReliabilityBin {
	if len(probability) != len(happened) {
		panic(badLength)
	}
	all := make([]ReliabilityBin, bins)
	for i, p := range probability {
		b := &all[min(max(int(p*float64(bins)), 0), bins-1)]
		b.Forecast += p
		b.Observed += indicator(happened[i])
		b.Count++
	}
	out := all[:0]
	for _, b := range all {
		if b.Count > 0 {
			b.Forecast /= float64(b.Count)
			b.Observed /= float64(b.Count)
			out = append(out, b)
		}
	}
	return out
}

// AUC returns the area under the ROC curve: the probability that a score drawn
// from the positives exceeds one drawn from the negatives, ties counting half.
// 0.5 is chance. It is NaN if either set is empty.
func AUC(positives, negatives []float64) float64 {
	type labelled struct {
		score    float64
		positive bool
	}
	all := make([]labelled, 0, len(positives)+len(negatives))
	for _, v := range positives {
		all = append(all, labelled{v, true})
	}
	for _, v := range negatives {
		all = append(all, labelled{v, false})
	}
	slices.SortFunc(all, func(a, b labelled) int { return cmp.Compare(a.score, b.score) })
	rankSum := 0.0
	for i := 0; i < len(all); {
		j, tiedPositives := i, 0
		for j < len(all) && all[j].score == all[i].score {
			if all[j].positive {
				tiedPositives++
			}
			j++
		}
		rankSum += float64(tiedPositives) * float64(i+j+1) / 2 // ranks i+1..j share their mean
		i = j
	}
	n, m := float64(len(positives)), float64(len(negatives))
	return (rankSum - n*(n+1)/2) / (n * m)
}

// KolmogorovSmirnov returns the largest distance between the distribution
// functions of two sets of values: 0 where they agree, 1 where they do not
// overlap, NaN where either is empty.
func KolmogorovSmirnov(a, b []float64) float64 {
	if len(a) == 0 || len(b) == 0 {
		return math.NaN()
	}
	x, y := slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	i, j, most := 0, 0, 0.0
	for i < len(x) && j < len(y) {
		v := min(x[i], y[j])
		for i < len(x) && x[i] <= v {
			i++
		}
		for j < len(y) && y[j] <= v {
			j++
		}
		most = max(most, math.Abs(float64(i)/float64(len(x))-float64(j)/float64(len(y))))
	}
	return most
}

// A Quantile holds the errors of the pixels whose predictor lies in one share
// of its distribution.
type Quantile struct {
	Low    float64 `json:"low"` // range of the predictor
	High   float64 `json:"high"`
	RMSE   float64 `json:"rmse"`
	Pixels int     `json:"pixels"`
}

// RMSEByQuantile sorts errors by a predictor, such as a reliability, and
// returns their root mean square in n classes of equal size, least predictor
// first. Equal predictors stay in one class, so classes may be fewer than n
// where the predictor takes few values.
func RMSEByQuantile(predictor, errs []float64, n int) []Quantile {
	if len(predictor) != len(errs) {
		panic(badLength)
	}
	order := make([]int, len(predictor))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(predictor[a], predictor[b]) })
	var out []Quantile
	for i := 0; i < len(order); {
		end := max(i+1, len(order)*(len(out)+1)/n)
		for end < len(order) && predictor[order[end]] == predictor[order[end-1]] {
			end++
		}
		q := Quantile{Low: predictor[order[i]], High: predictor[order[end-1]], Pixels: end - i}
		sum := 0.0
		for _, k := range order[i:end] {
			sum += errs[k] * errs[k]
		}
		q.RMSE = math.Sqrt(sum / float64(end-i))
		out = append(out, q)
		i = end
	}
	return out
}
