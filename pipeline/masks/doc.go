// Package masks measures the masks of a prior: how like real ones they are, and
// how strongly guidance must pull them.
//
//	real and drawn masks ──Describe──▶ Statistics ──Distance──▶ when a training has come closest
//	patches ──AutoStrength──▶ Strength: the weight of guidance for a context share
//	patches ──Exhibits──▶ the rows of a contact sheet
//
// Describe is a function of the masks alone. AutoStrength and Exhibits draw, and
// give the same for the same model, patches and settings.
//
// Package masks does not know how a prior is trained or how its network answers,
// nor the imputer that learns by its masks. The likelihood of a mask under a
// prior is in package prior.
package masks
