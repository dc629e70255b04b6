import js from "@eslint/js";
import globals from "globals";

export default [
  js.configs.recommended,
  {
    files: ["**/*.js"],
    languageOptions: { ecmaVersion: 2023, sourceType: "module", globals: globals.browser },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      "consistent-return": "off",
      eqeqeq: "error",
      "no-console": "error",
      "no-shadow": "error",
      "no-undef": "error",
      "no-unused-vars": ["error", { args: "all", argsIgnorePattern: "^_" }],
      "no-use-before-define": ["error", { functions: false, variables: false }],
      "no-var": "error",
      "no-eval": "error",
      "no-restricted-properties": [
        "error",
        { property: "innerHTML", message: "Text is inserted as text, never as HTML." },
        { property: "insertAdjacentHTML", message: "Text is inserted as text, never as HTML." },
      ],
      "prefer-const": "error",
    },
  },
];
