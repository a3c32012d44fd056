// Package evaluate judges methods that fill gaps: all on the same overlays,
// with the same information, by the same scores.
//
// A Method answers a Case: a held-out window over which the gaps of another
// held-out day were laid. An Exam asks a method about every case and returns a
// Verdict; Results hold each method's scores, the paired difference from a
// reference with its confidence, and the data of tables and pictures.
// Where a method was trained several times, its verdicts differ in their seed,
// and a table shows mean and spread over the seeds.
//
//	HeldOut ──Cases──▶ Case ──Method.Fill──▶ Answer ──▶ skill.Scores ──▶ Results ──▶ tables, pictures
//
// An overlay hides clear sky, and clouds do not: WeighGaps weighs cells so that
// they resemble true gaps, and with a Truth the true gaps themselves are scored.
// A GaussianSea is a world whose best method is known.
//
// Answers can be changed before they are scored: sigmas calibrated, members
// moved to the mean and calibrated, maps given the texture of a member. A case is
// calibrated on cases of days apart from its own, in Folds; where the days are too
// few for that, its score says so.
//
// A case holds visible cells only, none of those that are scored. The same cases
// and methods give the same results.
//
// Package evaluate trains nothing and touches no file: networks come trained
// from the caller. Package tables trains them.
package evaluate
