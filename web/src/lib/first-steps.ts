import type { Library, LibraryRecord } from "@/api/types";

/** How many documents came with the program, over libraries. */
export function samplesIn(libraries: readonly Pick<LibraryRecord, "samples">[]): number {
  return libraries.reduce((sum, library) => sum + library.samples, 0);
}

/** True for a new user: no document of their own, and no question yet. */
export function isUntouched(libraries: readonly Pick<LibraryRecord, "documents" | "samples">[], conversations: number): boolean {
  return conversations === 0 && libraries.every((library) => library.documents === library.samples);
}

/** The library to begin with: one that has the reader's own documents, else one that has any; the server's default among equals. */
export function startLibrary(libraries: readonly Pick<LibraryRecord, "library" | "documents" | "samples">[], byDefault: Library): Library | null {
  const own = libraries.filter((l) => l.documents > l.samples);
  const filled = own.length > 0 ? own : libraries.filter((l) => l.documents > 0);
  return (filled.find((l) => l.library === byDefault) ?? filled[0])?.library ?? null;
}
