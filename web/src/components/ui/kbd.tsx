export function Kbd({ children }: { children: string }) {
  return <kbd className="rounded-sm border border-line-strong bg-sunken px-1.5 font-mono text-2xs text-ink">{children}</kbd>;
}
