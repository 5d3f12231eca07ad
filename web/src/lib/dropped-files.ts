/** A file to upload and its path below the dropped folder; null for a file dropped by itself. */
export interface PickedFile {
  file: File;
  path: string | null;
}

/** Files of a file input; a folder input gives each one its relative path. */
export function pickedFiles(list: FileList | null): PickedFile[] {
  return [...(list ?? [])]
    .filter((file) => !hidden(file.webkitRelativePath || file.name))
    .map((file) => ({ file, path: file.webkitRelativePath === "" ? null : file.webkitRelativePath }));
}

/** Files and folders of a drop, folders walked to the end. Must be called in the drop event's own turn. */
export async function droppedFiles(transfer: DataTransfer): Promise<PickedFile[]> {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry()).filter((entry) => entry !== null);
  if (entries.length === 0) return pickedFiles(transfer.files);
  const found = await Promise.all(entries.map((entry) => walk(entry, false)));
  return found.flat();
}

async function walk(entry: FileSystemEntry, inside: boolean): Promise<PickedFile[]> {
  if (hidden(entry.name)) return [];
  if (isFile(entry)) {
    const file = await new Promise<File>((resolve, reject) => entry.file(resolve, reject));
    return [{ file, path: inside ? entry.fullPath.replace(/^\//, "") : null }];
  }
  if (!isDirectory(entry)) return [];
  const reader = entry.createReader();
  const all: PickedFile[] = [];
  // A reader hands out at most 100 entries at a time, and an empty list at the end.
  for (;;) {
    const batch = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (batch.length === 0) return all;
    all.push(...(await Promise.all(batch.map((child) => walk(child, true)))).flat());
  }
}

function isFile(entry: FileSystemEntry): entry is FileSystemFileEntry {
  return entry.isFile;
}

function isDirectory(entry: FileSystemEntry): entry is FileSystemDirectoryEntry {
  return entry.isDirectory;
}

/** Dot files are a system's own (.DS_Store, .git), never what a person means to ask. */
function hidden(path: string): boolean {
  return path.split("/").some((part) => part.startsWith("."));
}
