import js from "@eslint/js";
import globals from "globals";
import tseslint from "typescript-eslint";

const notFrom = (...names) => ({
  "no-restricted-imports": ["error", { patterns: names.map((name) => ({ group: [name, `${name}/*`] })) }],
});

export default tseslint.config(
  { ignores: ["**/node_modules/", "**/dist/", "**/generated/", "backend/", ".venv*/", ".tensorviz-setup/"] },
  { linterOptions: { reportUnusedDisableDirectives: "error" } },
  js.configs.recommended,
  {
    rules: {
      curly: ["error", "multi-line"],
      eqeqeq: "error",
      "no-console": "error",
      "no-eval": "error",
      "no-implied-eval": "error",
      "no-new-func": "error",
      complexity: ["error", 15],
      "max-depth": ["error", 4],
      "max-lines-per-function": ["error", { max: 100, skipBlankLines: true, skipComments: true }],
    },
  },
  { files: ["**/*.ts", "**/*.tsx"], extends: [tseslint.configs.strict] },
  {
    files: ["**/*.ts", "**/*.tsx"],
    rules: {
      "@typescript-eslint/consistent-type-imports": "error",
      "@typescript-eslint/no-unused-vars": ["error", { argsIgnorePattern: "^_" }],
    },
  },
  { files: ["packages/*/src/**"], languageOptions: { globals: globals.browser } },
  { files: ["**/scripts/**", "*.config.*", "**/*.config.*"], languageOptions: { globals: globals.node } },
  { files: ["**/scripts/**"], rules: { "no-console": "off" } },
  { files: ["**/*.test.*", "**/test/**", "**/tests/**"], rules: { "max-lines-per-function": "off" } },
  // Who may import whom: contracts nobody, viewer the contracts, the extension both.
  { files: ["packages/contracts/**"], rules: notFrom("vscode", "preact", "@preact", "@tensorviz/viewer", "tensorviz-vscode") },
  { files: ["packages/viewer/**"], rules: notFrom("vscode", "tensorviz-vscode") },
);
