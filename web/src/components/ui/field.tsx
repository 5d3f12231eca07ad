import { useState, type InputHTMLAttributes, type ReactNode, type SelectHTMLAttributes } from "react";
import { Button } from "./button";
import { cx } from "./cx";
import { Icon } from "./icon";

const BOX = "rounded-md border border-line-strong bg-surface text-ink placeholder:text-muted";

interface InputProps extends InputHTMLAttributes<HTMLInputElement> {
  label: string;
}

/** A one-line field whose label is spoken and shown as placeholder only. */
export function Input({ label, className, ...rest }: InputProps) {
  return <input aria-label={label} className={cx(BOX, "min-h-7 w-full min-w-0 px-2 py-1 text-sm", className)} {...rest} />;
}

interface LineFormProps extends Omit<InputProps, "onChange" | "value"> {
  button: string;
  onSend: (text: string) => void;
  accepts?: (text: string) => boolean;
}

/** A field and the button that sends what it holds; then it is empty. A form around it is not sent with it. */
export function LineForm({ button, onSend, accepts = (text) => text !== "", disabled = false, className, ...rest }: LineFormProps) {
  const [text, setText] = useState("");
  return (
    <form
      className={cx("flex gap-1.5", className)}
      onSubmit={(event) => {
        event.preventDefault();
        event.stopPropagation();
        if (!accepts(text.trim())) return;
        onSend(text.trim());
        setText("");
      }}
    >
      <Input value={text} onChange={(event) => setText(event.target.value)} {...rest} />
      <Button type="submit" disabled={disabled || !accepts(text.trim())}>
        {button}
      </Button>
    </form>
  );
}

/** A name that is changed where it stands; Enter keeps it, a click elsewhere does not. */
export function RenameForm({ label, value, onRename, onClose }: { label: string; value: string; onRename: (name: string) => void; onClose: () => void }) {
  const [name, setName] = useState(value);
  return (
    <form
      className="min-w-0 flex-1"
      onSubmit={(event) => {
        event.preventDefault();
        event.stopPropagation();
        if (name.trim() !== "" && name.trim() !== value) onRename(name.trim());
        onClose();
      }}
    >
      <Input label={label} value={name} autoFocus onChange={(event) => setName(event.target.value)} onBlur={onClose} />
    </form>
  );
}

/** An input with a magnifier that clears with Escape. */
export function SearchInput({ label, value, onValue, className, ...rest }: Omit<InputProps, "onChange" | "value"> & { value: string; onValue: (value: string) => void }) {
  return (
    <div className={cx("relative", className)}>
      <span className="pointer-events-none absolute inset-y-0 left-2 flex items-center text-muted">
        <Icon name="search" size={13} />
      </span>
      <Input
        label={label}
        type="search"
        className="pl-7"
        value={value}
        onChange={(event) => onValue(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape" && value !== "") {
            event.stopPropagation();
            onValue("");
          }
        }}
        {...rest}
      />
    </div>
  );
}

interface SelectProps<T extends string> extends Omit<SelectHTMLAttributes<HTMLSelectElement>, "onChange" | "value"> {
  label: string;
  value: T;
  options: readonly { value: T; label: string; disabled?: boolean }[];
  onValue: (value: T) => void;
}

/** The platform's own select: keyboard, phone and screen reader come with it. */
export function Select<T extends string>({ label, value, options, onValue, className, ...rest }: SelectProps<T>) {
  return (
    <span className={cx("relative inline-flex min-w-0", className)}>
      <select
        aria-label={label}
        title={label}
        value={value}
        onChange={(event) => {
          const chosen = options.find((option) => option.value === event.target.value);
          if (chosen !== undefined) onValue(chosen.value);
        }}
        className="min-h-7 w-full min-w-0 appearance-none truncate rounded-md border border-transparent bg-transparent py-1 pr-6 pl-2 text-xs text-muted hover:bg-sunken hover:text-ink"
        {...rest}
      >
        {options.map((option) => (
          <option key={option.value} value={option.value} disabled={option.disabled} className="bg-surface text-ink">
            {option.label}
          </option>
        ))}
      </select>
      <span className="pointer-events-none absolute inset-y-0 right-1.5 flex items-center text-muted">
        <Icon name="chevron" size={11} />
      </span>
    </span>
  );
}

/** Mutually exclusive choices side by side. */
export function Segmented<T extends string>({ label, value, options, onValue }: { label: string; value: T; options: readonly { value: T; label: ReactNode; title?: string }[]; onValue: (value: T) => void }) {
  return (
    <div role="group" aria-label={label} className="flex rounded-md border border-line bg-sunken p-0.5">
      {options.map((option) => (
        <button
          key={option.value}
          type="button"
          title={option.title}
          aria-pressed={option.value === value}
          onClick={() => onValue(option.value)}
          className={cx(
            "flex-1 rounded-sm px-2 py-1 text-xs font-medium whitespace-nowrap transition-colors",
            option.value === value ? "bg-surface text-ink shadow-[0_0_0_1px_var(--line-strong)]" : "text-muted hover:text-ink",
          )}
        >
          {option.label}
        </button>
      ))}
    </div>
  );
}
