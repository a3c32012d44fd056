package retrain

import (
	"bytes"
	"fmt"

	"lacuna/modelstore"
	"lacuna/pipeline/version"
	"lacuna/publish/quicklook"
)

// addPicture draws the window of the exam that is shown into the files of a
// version.
func addPicture(contents map[string][]byte, dataset string, r *version.Ruling) error {
	if r == nil || r.Scene == nil {
		return nil
	}
	s := r.Scene
	land := make([]bool, len(s.Land))
	for i, cell := range s.Land {
		land[i] = cell != 0
	}
	var png bytes.Buffer
	err := quicklook.RenderContest(&png, quicklook.Contest{
		Title: fmt.Sprintf("%s, %s, %.0f %% seen; error on what was hidden: before %.3g, after %.3g",
			dataset, s.Time.Format("2 January 2006"), 100*s.ObservedShare, s.BeforeError, s.AfterError),
		Lat: s.Lat, Lon: s.Lon, Land: land, Log: s.Log10, BeforeBy: s.BeforeBy,
		Seen: s.Values(s.Seen), Hidden: s.Values(s.Hidden), Before: s.Values(s.Before), After: s.Values(s.After),
	})
	contents[modelstore.PictureFile] = png.Bytes()
	return err
}
