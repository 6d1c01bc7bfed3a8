package scenario

// Words are all steps, keys and tags.
func Words() (words []string) {
	for _, v := range verbs {
		words = append(words, v.name)
		for _, f := range v.keys {
			words = append(words, "`"+f.name+"`")
		}
	}
	for _, f := range settings {
		words = append(words, "`"+f.name+"`")
	}
	for _, f := range fakeShape.fields {
		words = append(words, "`"+f.name+"`")
	}
	return append(append(words, valueTags...), matchTags...)
}
