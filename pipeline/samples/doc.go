// Package samples turns days of gappy maps into patches that networks learn
// from and overlays that every method is judged on.
//
// A Series holds the maps of one dataset, and a Calendar says what each date is
// for: to learn from, to choose by or to judge on. Extend gives new dates a role
// and never changes one. Assign cuts a series by its calendar into a Train and two
// HeldOut, with days of no side between them; they are different types, so code
// that trains cannot be handed a held-out day by mistake. The scaling comes from
// the training days alone: delete every held-out file and it stays the same.
//
//	fields ──New──▶ Series ──Assign──▶ Train ───Refs, Cut──▶ Patch
//	       days ──Extend──▶ Calendar ┘└─▶ HeldOut ──Overlays──▶ Overlay
//
// Several series of one variable may be split together. Each stays a Place with
// its own grid and scaling: a day is of one place, and only days of the same
// place are its neighbours, lend it their gaps or analyse it.
//
// A Patch is a square window of one day in normalised anomalies: the
// transformed value minus the smooth mean map of the training days, over the
// standard deviation of the training values. So an error of 1 is one standard
// deviation of the variable, and a mean squared error is a share of its
// variance. Around a patch, Last and Next give the nearest earlier and later
// observation of each cell, and Backgrounds an analysis of the neighbouring
// days; none of them looks at the patch's own day.
//
// An Overlay lays the gaps of one held-out day over another: real gaps over
// known values, the same for every method.
//
// Package samples is pure: no file, clock or log. It knows nothing of
// networks, of masks that a model draws, or of where fields come from.
package samples
