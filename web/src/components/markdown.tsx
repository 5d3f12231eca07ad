import { memo, useEffect, useMemo, useState, type ReactNode } from "react";
import ReactMarkdown, { type Components } from "react-markdown";
import rehypeSanitize, { defaultSchema } from "rehype-sanitize";
import remarkGfm from "remark-gfm";
import { IconButton } from "@/components/ui/button";
import { useCopied } from "@/hooks/use-copied";
import { answerMarks, type AnswerMarks } from "@/lib/answer-marks";
import { t } from "@/lib/language";
import { webLink } from "@/lib/links";
import { plainReferences } from "@/lib/plain-references";

/** Only what GitHub allows, without images and without attributes that name things. */
const schema = {
  ...defaultSchema,
  tagNames: (defaultSchema.tagNames ?? []).filter((name) => !["img", "input", "picture", "source"].includes(name)),
  protocols: { ...defaultSchema.protocols, href: ["http", "https"] },
};

interface Props {
  text: string;
  sentences?: AnswerMarks["sentences"];
  /** Numbers of the sources: each `[n]` of them becomes a pill. */
  sources: AnswerMarks["sources"];
  tinted?: AnswerMarks["tinted"];
  aside?: AnswerMarks["aside"];
  renderCitation: (n: number, sentence: number) => ReactNode;
}

type Rich = typeof import("./rich-markdown").richPlugins;

const CODE = /^ {0,3}(?:```|~~~)/m;
const MATHS = /\$\$[\s\S]+?\$\$|\\\([\s\S]+?\\\)|\\\[[\s\S]+?\\\]|\$(?=\S)[^$\n]*\S\$|\$[a-zA-Z]\$/;
let rich: Rich | null = null;

/** Fetch what draws maths and colours code. */
export async function loadRich(): Promise<Rich> {
  rich = (await import("./rich-markdown")).richPlugins;
  return rich;
}

function useRich(wanted: boolean): Rich | null {
  const [loaded, setLoaded] = useState(rich);
  useEffect(() => {
    // Without them the answer is shown as it is.
    if (wanted && loaded === null) loadRich().then(setLoaded, () => undefined);
  }, [wanted, loaded]);
  return wanted ? loaded : null;
}

/** LaTeX's own brackets as dollar signs of the same length, so that the places of sentences stay. */
function dollars(text: string): string {
  return text.replace(/\\\(([\s\S]+?)\\\)|\\\[([\s\S]+?)\\\]/g, (_, inline?: string, display?: string) => `$$${inline ?? display ?? ""}$$`);
}

/** Markdown of an answer: no raw HTML, no images, links that say where they go, pills for `[n]`. */
export const Markdown = memo(function Markdown({ text, sentences = NONE, sources, tinted, aside, renderCitation }: Props) {
  const marks = useMemo(() => answerMarks({ source: text, sentences, sources, tinted, aside }), [text, sentences, sources, tinted, aside]);
  const maths = MATHS.test(text);
  const plugins = useRich(maths || CODE.test(text));
  const components = useMemo<Components>(
    () => ({
      pre: ({ children }) => <CodeBlock>{children}</CodeBlock>,
      a: ({ href, children }) => <SafeLink href={href}>{children}</SafeLink>,
      img: ({ alt }) => <span>{alt}</span>,
      sup: ({ node, children }) => {
        const n = node?.properties["dataCitation"];
        const sentence = node?.properties["dataSentence"];
        if (typeof n === "number" && typeof sentence === "number") {
          return (
            <span className="whitespace-nowrap">
              {renderCitation(n, sentence)}
              {children}
            </span>
          );
        }
        return <sup>{children}</sup>;
      },
    }),
    [renderCitation],
  );
  return (
    <ReactMarkdown
      remarkPlugins={[remarkGfm, ...(maths ? (plugins?.remark ?? []) : []), plainReferences]}
      rehypePlugins={[dropImages, [rehypeSanitize, schema], ...(plugins?.code ?? []), marks, ...(plugins?.maths ?? [])]}
      components={components}
      urlTransform={httpOnly}
    >
      {plugins === null || !maths ? text : dollars(text)}
    </ReactMarkdown>
  );
});

const NONE: AnswerMarks["sentences"] = [];

interface HastNode {
  type: string;
  tagName?: string;
  properties?: Record<string, unknown>;
  children?: HastNode[];
  value?: string;
}

/** An image would be a request to wherever the text says; its words stay. */
function dropImages() {
  return (tree: HastNode): void => {
    const walk = (node: HastNode): void => {
      node.children = node.children?.map((child) => {
        if (child.tagName !== "img") return child;
        const alt = child.properties?.["alt"];
        return { type: "text", value: typeof alt === "string" ? alt : "" };
      });
      node.children?.forEach(walk);
    };
    walk(tree);
  };
}

function httpOnly(url: string): string {
  return webLink(url)?.href ?? "";
}

/** Code with a button that copies it. */
function CodeBlock({ children }: { children: ReactNode }) {
  const { state, copy } = useCopied();
  return (
    <div className="relative">
      <pre tabIndex={0}>{children}</pre>
      <IconButton
        icon={state === "copied" ? "check" : "copy"}
        label={state === "copied" ? t("Copied") : state === "failed" ? t("The browser does not allow copying here") : t("Copy code")}
        onClick={(event) => copy(event.currentTarget.previousElementSibling?.textContent ?? "")}
        className="absolute top-1 right-1 bg-sunken"
      />
    </div>
  );
}

/** A link out of the page; its host is shown, so that the text cannot say another. */
function SafeLink({ href, children }: { href: string | undefined; children: ReactNode }) {
  const link = webLink(href);
  if (link === null) return <>{children}</>;
  const plain = typeof children === "string" && children.includes(link.host);
  return (
    <a href={link.href} target="_blank" rel="noopener noreferrer nofollow">
      {children}
      {!plain && <span className="text-muted"> ({link.host})</span>}
    </a>
  );
}
