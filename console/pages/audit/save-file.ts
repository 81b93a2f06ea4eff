/** Saves generated text as a file. */

/** Delay before the URL of a download is revoked, in milliseconds. The browser needs less time. */
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
