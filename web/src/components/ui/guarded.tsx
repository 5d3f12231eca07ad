import { Component, type ReactNode } from "react";
import { t } from "@/lib/language";
import { Failure } from "./states";

interface Props {
  /** What is shown inside, for the message: "This answer", "Search". */
  what: string;
  children: ReactNode;
}

/** Keeps an error of what is shown inside to itself: the rest of the page stays, and a retry shows it again. */
export class Guarded extends Component<Props, { error: Error | null }> {
  override state: { error: Error | null } = { error: null };

  static getDerivedStateFromError(error: unknown): { error: Error } {
    return { error: error instanceof Error ? error : new Error(String(error)) };
  }

  override render(): ReactNode {
    const { error } = this.state;
    if (error === null) return this.props.children;
    return (
      <div className="p-3">
        <Failure error={error} what={t("{what} cannot be shown.", { what: this.props.what })} onRetry={() => this.setState({ error: null })} />
      </div>
    );
  }
}
