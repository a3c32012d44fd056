package erddap

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"lacuna/fetch/web"
	"lacuna/internal/cdl"
)

// refusal returns the error that a body is instead of an answer: a web page, or
// the error of OPeNDAP.
func refusal(text []byte) error {
	head := bytes.TrimSpace(text[:min(len(text), 4096)])
	switch {
	case bytes.HasPrefix(head, []byte("<")):
		return errors.New("it answered with a web page, not with data: is url the address up to /erddap, and the server not under repair?")
	case bytes.HasPrefix(head, []byte("Error {")):
		return fmt.Errorf("the server says: %s", message(head))
	}
	return nil
}

// message returns the sentence of an error of OPeNDAP.
func message(text []byte) string {
	_, after, ok := bytes.Cut(text, []byte("message="))
	if !ok {
		return "an error without a message"
	}
	after = bytes.Trim(bytes.TrimSpace(after), "\";} \n")
	return fmt.Sprintf("%.300q", after)
}

// explain adds what the server says to a status of failure.
func explain(err error) error {
	var status *web.StatusError
	if !errors.As(err, &status) {
		return err
	}
	if head := bytes.TrimSpace([]byte(status.Body)); bytes.HasPrefix(head, []byte("Error {")) {
		return fmt.Errorf("%w: the server says: %s", err, message(head))
	}
	return err
}

// attributes are those of a dataset, by the variable, in their order.
type attributes map[string][]cdl.Attr

// globals is the name under which a server gives the attributes of the dataset.
const globals = "NC_GLOBAL"

// parseDAS reads a Dataset Attribute Structure.
func parseDAS(text []byte) (attributes, error) {
	words, err := tokens(text)
	if err != nil {
		return nil, fmt.Errorf("attributes: %w", err)
	}
	if len(words) < 2 || !strings.EqualFold(words[0], "attributes") || words[1] != "{" {
		return nil, errors.New("attributes: not a Dataset Attribute Structure")
	}
	out := attributes{}
	block := ""
	for words = words[2:]; len(words) > 0; {
		switch {
		case words[0] == "}":
			if block == "" {
				return out, nil
			}
			block, words = "", words[1:]
		case block == "" && len(words) > 1 && words[1] == "{":
			block, words = unquoted(words[0]), words[2:]
			out[block] = nil
		case block != "":
			end := index(words, ";")
			if end < 3 {
				return nil, fmt.Errorf("attributes of %.60s: %.60q is no attribute", block, words[0])
			}
			if value := attributeOf(words[0], words[2:end]); value != nil {
				out[block] = append(out[block], cdl.Attr{Name: unquoted(words[1]), Value: value})
			}
			words = words[end+1:]
		default:
			return nil, fmt.Errorf("attributes: %.60q stands outside of a variable", words[0])
		}
	}
	return nil, errors.New("attributes: they end early")
}

func index(words []string, word string) int {
	for i, w := range words {
		if w == word {
			return i
		}
	}
	return -1
}

// attributeOf returns the values of an attribute; nil where they cannot be read.
func attributeOf(typ string, words []string) any {
	var values []string
	for i, w := range words {
		if i%2 == 0 { // commas between
			values = append(values, unquoted(w))
		}
	}
	if strings.EqualFold(typ, "string") || strings.EqualFold(typ, "url") {
		return strings.Join(values, " ")
	}
	name := types(typ)
	if name == "ubyte" && len(values) > 0 && strings.HasPrefix(values[0], "-") {
		name = "byte"
	}
	stored, err := cdl.Encode(name, values)
	if err != nil {
		return nil
	}
	return cdl.Decode(name, stored)
}

// types are the types of OPeNDAP by their names in package cdl.
func types(name string) string {
	return map[string]string{
		"byte": "ubyte", "int16": "short", "uint16": "ushort", "int32": "int", "uint32": "uint", "float32": "float", "float64": "double",
	}[strings.ToLower(name)]
}

// maxTokens bounds the words of a structure: a dataset has a few hundred
// attributes.
const maxTokens = 200_000

// tokens cuts a structure into words, quoted texts and the characters {};,[]=.
func tokens(text []byte) ([]string, error) {
	var out []string
	for i := 0; i < len(text); {
		if len(out) > maxTokens {
			return nil, fmt.Errorf("more than %d words", maxTokens)
		}
		switch c := text[i]; {
		case c == ' ' || c == '\n' || c == '\r' || c == '\t':
			i++
		case strings.IndexByte("{};,[]=:", c) >= 0:
			out = append(out, string(c))
			i++
		case c == '"':
			end := i + 1
			for end < len(text) && text[end] != '"' {
				if text[end] == '\\' {
					end++
				}
				end++
			}
			if end >= len(text) {
				return nil, errors.New("a text has no end")
			}
			out = append(out, string(text[i:end+1]))
			i = end + 1
		default:
			end := i
			for end < len(text) && strings.IndexByte(" \n\r\t{};,[]=\"", text[end]) < 0 {
				end++
			}
			out = append(out, string(text[i:end]))
			i = end
		}
	}
	return out, nil
}

// unquoted returns a word without its quotation marks.
func unquoted(word string) string {
	if !strings.HasPrefix(word, `"`) {
		return word
	}
	if plain, err := strconv.Unquote(strings.NewReplacer("\n", `\n`, "\r", `\r`, "\t", `\t`).Replace(word)); err == nil {
		return plain
	}
	return strings.Trim(word, `"`)
}
