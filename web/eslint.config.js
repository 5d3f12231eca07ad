import js from "@eslint/js";
import hooks from "eslint-plugin-react-hooks";
import { defineConfig } from "eslint/config";
import tseslint from "typescript-eslint";

const upwards = {
  group: ["../*", "../**"],
  message: "Leave a folder through '@/'; inside it use './'.",
};

/** Where a person reads what stands there: between tags, and in these attributes; once directly, once behind a condition. */
const SHOWN = ":matches(JSXElement, JSXFragment, JSXAttribute[name.name=/^(alt|aria-label|aria-valuetext|button|caption|label|lead|placeholder|says|title|what)$/])";
const WORDS = "/\\p{L}/u";
const literals = [
  `JSXText[value=${WORDS}]`,
  `${SHOWN} > Literal[value=${WORDS}]`,
  ...["", "ConditionalExpression > ", "LogicalExpression > "].flatMap((behind) => [
    `${SHOWN} > JSXExpressionContainer > ${behind}Literal[value=${WORDS}]`,
    `${SHOWN} > JSXExpressionContainer > ${behind}TemplateLiteral > TemplateElement[value.raw=${WORDS}]`,
  ]),
].map((selector) => ({ selector, message: "A text that is read is a message: t(\"...\") or tx(...) of lib/language." }));

/** What a folder of src may not import, so that the arrows point one way: app > features > components > hooks > api > lib. */
const layers = [
  ["src/features/**", ["@/features/*", "@/features/**", "@/app/*"], "A feature never imports another feature or the shell."],
  ["src/components/**", ["@/features/**", "@/app/**"], "Components know nothing of features."],
  ["src/hooks/**", ["@/features/**", "@/app/**", "@/components/**"], "Hooks know nothing of what is drawn."],
  ["src/api/**", ["@/features/**", "@/app/**", "@/components/**", "@/hooks/**"], "The client knows nothing of the page."],
  ["src/lib/**", ["@/features/**", "@/app/**", "@/components/**", "@/hooks/**"], "lib is pure."],
];

export default defineConfig(
  { ignores: ["node_modules", "dist", "src/api/schema.d.ts"] },
  js.configs.recommended,
  ...tseslint.configs.strictTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    plugins: { "react-hooks": hooks },
    rules: {
      ...hooks.configs.recommended.rules,
      "@typescript-eslint/no-explicit-any": "error",
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      "@typescript-eslint/no-confusing-void-expression": ["error", { ignoreArrowShorthand: true }],
      "@typescript-eslint/dot-notation": "off",
      "no-eval": "error",
      "no-implied-eval": "error",
      "no-restricted-imports": ["error", { patterns: [upwards] }],
      "no-restricted-syntax": [
        "error",
        ...literals,
        { selector: "JSXAttribute[name.name='dangerouslySetInnerHTML']", message: "Text is data; render it as text." },
        { selector: "NewExpression[callee.name='Function']", message: "The content security policy forbids Function." },
      ],
    },
  },
  { files: ["tests/**"], rules: { "no-restricted-syntax": "off" } },
  ...layers.map(([files, group, message]) => ({
    files: [files],
    rules: { "no-restricted-imports": ["error", { patterns: [upwards, { group, message }] }] },
  })),
);
