package main

import (
	"bytes"
	"encoding/xml"
	"io"
)

// filtered returns a list in XML without the entries whose name is refused; the rest stays byte for byte.
func filtered(list []byte, element string, keep func(name string) bool) ([]byte, error) {
	decoder := xml.NewDecoder(bytes.NewReader(list))
	var made []byte
	done := int64(0) // this much of `list` is in `made`, or was left out
	for {
		begin := decoder.InputOffset()
		token, err := decoder.Token()
		if err == io.EOF {
			return append(made, list[done:]...), nil
		}
		if err != nil {
			return nil, err
		}
		start, isStart := token.(xml.StartElement)
		if !isStart || start.Name.Local != element {
			continue
		}
		var entry struct{ Name, Key string } // Azure's and Google's element
		if err := decoder.DecodeElement(&entry, &start); err != nil {
			return nil, err
		}
		if !keep(entry.Name + entry.Key) {
			made = append(made, list[done:begin]...)
			done = decoder.InputOffset()
		}
	}
}
