// The files that were dropped on a page, also those inside of folders.
export async function droppedFiles(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry?.()).filter(Boolean);
  if (!entries.length) return [...transfer.files];
  const files = [];
  for (const entry of entries) await collect(entry, files);
  return files;
}

// Files whose names begin with a dot are the file manager's own.
async function collect(entry, files) {
  if (entry.name.startsWith(".")) return;
  if (entry.isFile) {
    files.push(await new Promise((done, failed) => entry.file(done, failed)));
    return;
  }
  const reader = entry.createReader();
  const some = () => new Promise((done, failed) => reader.readEntries(done, failed));
  for (let part = await some(); part.length; part = await some()) for (const inside of part) await collect(inside, files);
}
