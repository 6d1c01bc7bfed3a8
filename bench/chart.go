package main

import (
	"bytes"
	"fmt"
	"html"
)

// Sizes of the chart, in pixels.
const (
	chartWidth = 900
	chartLabel = 190
	chartRow   = 18
	chartHead  = 34
)

// charted are the benchmarks that the chart shows.
var charted = []string{"ping-pong", "fan-in", "ask", "spawn-living", "memory-awake", "crash"}

// chart draws a panel of bars for each of them, with the spread as a line. Bars
// are as long as the figures, up to four times the median of all; longer ones are cut.
func chart(records []record) []byte {
	by := index(records)
	var w bytes.Buffer
	var body bytes.Buffer
	y := 8
	for _, name := range charted {
		b := benchmarkOf(name)
		var rows []record
		var titles []string
		var medians []float64
		for _, c := range contestants() {
			if r, ok := by[name+"\x00"+c.name]; ok && r.Missing == "" {
				rows, titles, medians = append(rows, r), append(titles, c.title), append(medians, r.Median)
			}
		}
		if len(rows) == 0 {
			continue
		}
		most := 0.0
		for _, m := range medians {
			most = max(most, m)
		}
		most = min(most, 4*median(medians))
		scale := float64(chartWidth-chartLabel-110) / most
		better := "less is better"
		if b.more {
			better = "more is better"
		}
		fmt.Fprintf(&body, `<text x="8" y="%d" class="h">%s, %s (%s)</text>`+"\n", y+18, html.EscapeString(b.title), html.EscapeString(b.unit), better)
		y += chartHead - 6
		for i, r := range rows {
			class, length := "theirs", r.Median*scale
			if i < 4 && len(titles[i]) > 5 && titles[i][:5] == "ours:" {
				class = "ours"
			}
			cut := ""
			if r.Median > most {
				length, cut = most*scale, " ..."
			}
			fmt.Fprintf(&body, `<text x="%d" y="%d" class="l">%s</text>`+"\n", chartLabel-6, y+13, html.EscapeString(titles[i]))
			fmt.Fprintf(&body, `<rect x="%d" y="%d" width="%.1f" height="%d" class="%s"/>`+"\n", chartLabel, y+2, max(length, 1), chartRow-5, class)
			if cut == "" && len(r.Samples) > 1 {
				fmt.Fprintf(&body, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" class="s"/>`+"\n", chartLabel+r.Min*scale, y+8, chartLabel+min(r.Max, most)*scale, y+8)
			}
			fmt.Fprintf(&body, `<text x="%.1f" y="%d" class="v">%s%s</text>`+"\n", chartLabel+max(length, min(r.Max, most)*scale)+6, y+13, number4(r.Median), cut)
			y += chartRow
		}
		y += 10
	}
	fmt.Fprintf(&w, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d">`+"\n", chartWidth, y, chartWidth, y)
	w.WriteString(`<style>text{font:12px sans-serif;fill:#222}.h{font-weight:bold;font-size:13px}.l{text-anchor:end}.ours{fill:#2a6fb0}.theirs{fill:#b9c2cc}.s{stroke:#222;stroke-width:1.5}</style>` + "\n")
	w.WriteString(`<rect width="100%" height="100%" fill="#fff"/>` + "\n")
	w.Write(body.Bytes())
	w.WriteString("</svg>\n")
	return w.Bytes()
}
