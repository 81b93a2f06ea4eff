/** Saves generated text as a file. */

/** Milliseconds until the URL of a download is revoked. The browser has read the text by then. */
const READ_MS = 60_000

/** Offers a text as a download; `type` is its media type. */
export function saveFile(name: string, type: string, text: string): void {
  const address = URL.createObjectURL(new Blob([text], { type }))
  const link = document.createElement('a')
  link.href = address
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(address), READ_MS)
}
