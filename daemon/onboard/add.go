package onboard

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Add returns a configuration with the dataset at the end of its list. What is there
// stays as it is, comments and order included: lines are put in, none is changed.
func (o Onboarding) Add(config []byte) ([]byte, error) {
	file, err := parser.ParseBytes(config, 0)
	if err != nil {
		return nil, err
	}
	if len(file.Docs) != 1 {
		return nil, fmt.Errorf("it holds %d YAML documents, not one", len(file.Docs))
	}
	lines := bytes.SplitAfter(config, []byte("\n"))
	if last := len(lines) - 1; len(lines[last]) == 0 {
		lines = lines[:last]
	} else {
		lines[last] = append(lines[last], '\n')
	}
	entry := o.write(o.dataset())
	keys := topKeys(file.Docs[0].Body)
	at, end := -1, len(lines) // of the datasets among keys; the line before which the entry goes
	for i, key := range keys {
		if key.Key.String() == "datasets" {
			at = i
		}
	}
	if at < 0 {
		return joined(lines, len(lines), append([]byte("datasets:\n"), entry...)), nil
	}
	if at+1 < len(keys) {
		end = above(lines, keys[at+1].Key.GetToken().Position.Line-1)
	}
	switch list := keys[at].Value.(type) {
	case *ast.NullNode:
	case *ast.SequenceNode:
		if list.IsFlowStyle {
			return nil, errors.New("datasets is in brackets: write it as a list with a dash for each dataset, then add another")
		}
		entry = indented(entry, list.Start.Position.Column-1)
	default:
		return nil, errors.New("datasets is not a list")
	}
	return joined(lines, end, entry), nil
}

// topKeys returns the keys at the top of a document.
func topKeys(body ast.Node) []*ast.MappingValueNode {
	switch b := body.(type) {
	case *ast.MappingNode:
		return b.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{b}
	}
	return nil
}

// above returns the first of the comments and blank lines that stand above a line,
// counted from 0: they belong to it.
func above(lines [][]byte, line int) int {
	for line > 0 {
		text := strings.TrimRight(string(lines[line-1]), "\r\n")
		if text != "" && text[0] != '#' {
			break
		}
		line--
	}
	return line
}

// indented moves an entry, which has its dash in the third column, to another one.
func indented(entry []byte, column int) []byte {
	const proposed = 2
	var b bytes.Buffer
	for line := range bytes.Lines(entry) {
		b.WriteString(strings.Repeat(" ", column))
		b.Write(line[proposed:])
	}
	return b.Bytes()
}

func joined(lines [][]byte, at int, entry []byte) []byte {
	return bytes.Join([][]byte{bytes.Join(lines[:at], nil), entry, bytes.Join(lines[at:], nil)}, nil)
}
