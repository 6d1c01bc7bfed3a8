package rebuild

import (
	"errors"
	"testing"

	"github.com/wasmactors/wasmactors/host/internal/turn"
	"github.com/wasmactors/wasmactors/host/record"
	"github.com/wasmactors/wasmactors/internal/sandbox"
)

// forgetful is a recorder that has code, or did.
type forgetful struct{}

func (forgetful) Turn(*turn.Turn)     {}
func (forgetful) Note(*record.Record) {}

var errGone = errors.New("it was deleted")

type codes struct{ forgetful }

func (codes) Code([]byte) (*sandbox.Image, error) { return nil, errGone }

func TestCodeThatNobodyHas(t *testing.T) {
	for _, r := range []record.Recorder{nil, forgetful{}} {
		if _, err := CodeOf(nil, "shop", []byte("code"), r); !errors.Is(err, ErrCode) {
			t.Error(err)
		}
	}
	if _, err := CodeOf(nil, "shop", []byte("code"), codes{}); !errors.Is(err, ErrCode) || !errors.Is(err, errGone) {
		t.Error(err)
	}
}
