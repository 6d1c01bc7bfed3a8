package scenario

// Words are all steps, keys and tags.
func Words() (words []string) {
	for _, v := range verbs {
		words = append(words, v.name)
		for _, f := range v.keys {
			words = append(words, "`"+f.Name+"`")
		}
	}
	for _, f := range settings {
		words = append(words, "`"+f.Name+"`")
	}
	for _, f := range fakeShape.Fields {
		words = append(words, "`"+f.Name+"`")
	}
	return append(append(words, valueTags...), matchTags...)
}
