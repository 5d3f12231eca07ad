import { Tag } from "@/components/ui/tag";
import { flagLines } from "@/lib/flags";
import { t } from "@/lib/language";

/** Says that a document has something its reader should know of; nothing for most. Answers kept before have no flags. */
export function FlagTag({ flags = [] }: { flags?: readonly string[] | undefined }) {
  if (flags.length === 0) return null;
  const isPictures = flags.every((flag) => /^(ocr|unread):/.test(flag));
  return (
    <Tag tone={isPictures ? "plain" : "warn"} title={flagLines(flags).join("\n")}>
      {isPictures ? t("OCR") : t("flagged")}
    </Tag>
  );
}
