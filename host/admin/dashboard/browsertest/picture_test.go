package browsertest

import (
	"os"
	"strings"

	"github.com/chromedp/chromedp"
)

// shot takes a picture of what is in view.
func (p *page) shot(file string) {
	p.t.Helper()
	png, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(strings.ReplaceAll(file, "?path=/", "-"), png, 0o644); err != nil {
		p.t.Fatal(err)
	}
}
