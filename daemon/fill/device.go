package fill

import (
	"fmt"
	"time"

	"lacuna/pipeline/infer"
)

// openDevice is the device, or the error of opening it. It is tried once: a
// library that is missing now is missing until the next start. A device that
// stands in for another is left as soon as that one is there.
type openDevice struct {
	infer.Device
	err   error
	tried time.Time // when the other was last looked for
}

// lookAgain is the time between two looks for a GPU that is away. A look takes
// about a second of a granule.
const lookAgain = 10 * time.Minute

// open returns the device. The lock is held.
func (m *Models) open() (infer.Device, error) {
	d := m.look()
	if d == nil {
		d = &openDevice{tried: m.parts.Now()}
		d.Device, d.err = m.parts.Open()
		m.device = d
	}
	return d.Device, d.err
}

// look returns the device, nil before the first model. Where it stands in for one
// that is back, it is that one from now on. The lock is held.
func (m *Models) look() *openDevice {
	d := m.device
	if d == nil || d.Away == "" || m.parts.Now().Sub(d.tried) < lookAgain {
		return d
	}
	d.tried = m.parts.Now()
	if back, err := m.parts.Open(); err == nil && back.Away == "" {
		m.log.Info("the GPU is back")
		m.retire()
		m.device = &openDevice{Device: back}
	}
	return m.device
}

// retire puts the starters aside, whose device is no longer used. Others may be
// filling by them. The lock is held.
func (m *Models) retire() {
	for _, model := range m.starters {
		m.retired = append(m.retired, model)
	}
	clear(m.starters)
}

// Lost tells that a model failed to fill, and reports whether the reason is that
// its GPU is gone and another device stands in from now on: then the granule is
// worth another try.
func (m *Models) Lost() bool {
	if m == nil {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	d := m.device
	if d == nil || !d.GPU || d.Try == nil || m.parts.StandIn == nil {
		return false
	}
	gone := d.Try()
	if gone == nil {
		return false // it is there, and the model is at fault
	}
	stand, err := m.parts.StandIn(fmt.Errorf("the GPU no longer computes: %w", gone))
	if err != nil {
		m.log.Error("the GPU is gone and nothing stands in for it", "err", err)
		return false
	}
	m.retire()
	m.device = &openDevice{Device: stand, tried: m.parts.Now()}
	return true
}

// Away says why models run on a device that stands in for the GPU that was asked
// for; empty: they do not.
func (m *Models) Away() string {
	if m == nil {
		return ""
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.device == nil {
		return ""
	}
	return m.device.Away
}
