import { useState, type ButtonHTMLAttributes, type ReactNode } from "react";
import { t } from "@/lib/language";
import { cx } from "./cx";
import { Icon, type IconName } from "./icon";

type Look = "primary" | "plain" | "quiet" | "danger";

const LOOKS: Record<Look, string> = {
  primary: "bg-accent text-accent-ink border-accent hover:opacity-90",
  plain: "bg-surface text-ink border-line-strong hover:bg-sunken",
  quiet: "border-transparent text-muted hover:text-ink hover:bg-sunken",
  danger: "bg-surface text-bad border-bad hover:bg-bad-soft",
};

interface Props extends ButtonHTMLAttributes<HTMLButtonElement> {
  look?: Look;
  icon?: IconName;
  children?: ReactNode;
}

const SHAPE =
  "inline-flex min-h-7 items-center justify-center gap-1.5 rounded-md border px-2.5 py-1 text-sm leading-4 font-medium whitespace-nowrap transition-colors disabled:opacity-50";

export function Button({ look = "plain", icon, children, className, type = "button", ...rest }: Props) {
  return (
    <button
      type={type}
      className={cx(SHAPE, LOOKS[look], className)}
      {...rest}
    >
      {icon !== undefined && <Icon name={icon} />}
      {children}
    </button>
  );
}

/** Chooses one file; looks like the other buttons and shows the name of the file. */
export function FileButton({ label, accept, onFile }: { label: string; accept?: string; onFile: (file: File | undefined) => void }) {
  const [name, setName] = useState<string | null>(null);
  return (
    <span className="inline-flex min-w-0 items-center gap-2">
      <label className={cx(SHAPE, LOOKS.plain, "relative cursor-pointer focus-within:outline-2 focus-within:outline-offset-2 focus-within:outline-accent")}>
        <Icon name="file" />
        {label}
        <input
          type="file"
          accept={accept}
          className="sr-only"
          onChange={(event) => {
            const file = event.target.files?.[0];
            setName(file?.name ?? null);
            onFile(file);
          }}
        />
      </label>
      <span className="truncate text-xs text-muted" title={name ?? undefined}>
        {name ?? t("no file chosen")}
      </span>
    </span>
  );
}

interface IconButtonProps extends ButtonHTMLAttributes<HTMLButtonElement> {
  icon: IconName;
  label: string;
  pressed?: boolean;
}

/** A button that shows an icon only; the label is its name and its tooltip. */
export function IconButton({ icon, label, pressed, className, type = "button", ...rest }: IconButtonProps) {
  return (
    <button
      type={type}
      aria-label={label}
      title={label}
      aria-pressed={pressed}
      className={cx(
        "inline-flex size-7 pointer-coarse:size-9 shrink-0 items-center justify-center rounded-md border border-transparent text-muted transition-colors hover:bg-sunken hover:text-ink disabled:opacity-40",
        pressed === true && "bg-accent-soft text-accent",
        className,
      )}
      {...rest}
    >
      <Icon name={icon} />
    </button>
  );
}
