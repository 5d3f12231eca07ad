import type { LibraryRecord } from "@/api/types";

/** How many documents came with the program, over libraries. */
export function samplesIn(libraries: readonly Pick<LibraryRecord, "samples">[]): number {
  return libraries.reduce((sum, library) => sum + library.samples, 0);
}

/** True for a new user: no document of their own, and no question yet. */
export function isUntouched(libraries: readonly Pick<LibraryRecord, "documents" | "samples">[], conversations: number): boolean {
  return conversations === 0 && libraries.every((library) => library.documents === library.samples);
}
