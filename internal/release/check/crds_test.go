package check

import (
	"os"
	"path/filepath"
	"testing"

	extensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	v1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"sigs.k8s.io/yaml"
)

// definition is an operator's schema of a kind, as Kubernetes' API server reads it.
type definition struct {
	validator validation.SchemaValidator
	schema    *structural.Structural
}

// definitions reads what crds.sh wrote; none without it.
func definitions(t *testing.T) map[string]definition {
	t.Helper()
	out := map[string]definition{}
	dir := os.Getenv("CRDS")
	if dir == "" {
		t.Log("without the operators' definitions: CRDS names no directory; make deploy-check sets it")
		return out
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil || len(files) != 5 {
		t.Fatalf("%d definitions in %s (%v), want 5", len(files), dir, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		var crd v1.CustomResourceDefinition
		if err == nil {
			err = yaml.Unmarshal(text, &crd)
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, version := range crd.Spec.Versions {
			out[crd.Spec.Group+"/"+version.Name+"/"+crd.Spec.Names.Kind] = schemaOf(t, version.Schema)
		}
	}
	return out
}

func schemaOf(t *testing.T, of *v1.CustomResourceValidation) (d definition) {
	t.Helper()
	var in extensions.CustomResourceValidation
	err := v1.Convert_v1_CustomResourceValidation_To_apiextensions_CustomResourceValidation(of, &in, nil)
	if err == nil {
		d.schema, err = structural.NewStructural(in.OpenAPIV3Schema)
	}
	if err == nil {
		d.validator, _, err = validation.NewSchemaValidator(in.OpenAPIV3Schema)
	}
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// check fails for an object that the operator's definition refuses, or of which the API server would drop a field.
func (d definition) check(t *testing.T, kind string, doc []byte) {
	t.Helper()
	var object map[string]any
	if err := yaml.Unmarshal(doc, &object); err != nil {
		t.Fatal(err)
	}
	for _, err := range validation.ValidateCustomResource(nil, object, d.validator) {
		t.Errorf("%s: %v", kind, err)
	}
	options := structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true}
	for _, path := range pruning.PruneWithOptions(object, d.schema, true, options) {
		t.Errorf("%s: unknown field %s", kind, path)
	}
}
