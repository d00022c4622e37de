// Prints what kstatus says of each object on standard input: one JSON document a line.
//
// It is the code by which `kubectl apply --prune`, Flux and Config Sync wait, so that a test can
// ask it what they would be told.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "kstatus:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	objects, answers := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var document json.RawMessage
		if err := objects.Decode(&document); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		var object unstructured.Unstructured
		if err := object.UnmarshalJSON(document); err != nil {
			return err
		}
		result, err := status.Compute(&object)
		if err != nil {
			return err
		}
		answer := map[string]string{"status": string(result.Status), "message": result.Message}
		if err := answers.Encode(answer); err != nil {
			return err
		}
	}
}
