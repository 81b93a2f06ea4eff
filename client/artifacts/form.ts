/**
 * The body of an upload: a `multipart/form-data` form (RFC 7578) whose last part is the file. The
 * file is streamed, so memory use does not depend on its size.
 */
import { randomUUID } from 'node:crypto'

/** The media type of a form, and its streamed body. */
export interface Form {
  readonly type: string
  readonly body: AsyncGenerator<Uint8Array, void>
}

/**
 * Creates the form.
 * @param fields text fields. Undefined ones are omitted.
 * @param open opens the file. It is called when the file part begins, so a request that fails before
 * its body is read opens nothing.
 * @param advanced receives the number of bytes of the file that were sent.
 */
export function formOf(
  fields: Readonly<Record<string, string | undefined>>,
  open: () => AsyncIterable<Uint8Array>,
  advanced: (bytes: number) => void,
): Form {
  const boundary = `baton-${randomUUID()}`
  const text = (value: string): Uint8Array => new TextEncoder().encode(value)
  async function* body(): AsyncGenerator<Uint8Array, void> {
    let head = ''
    for (const [name, value] of Object.entries(fields))
      if (value !== undefined)
        head += `--${boundary}\r\ncontent-disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`
    yield text(
      `${head}--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="file"\r\n` +
        'content-type: application/octet-stream\r\n\r\n',
    )
    let sent = 0
    for await (const chunk of open()) {
      yield chunk
      sent += chunk.length
      advanced(sent)
    }
    yield text(`\r\n--${boundary}--\r\n`)
  }
  return { type: `multipart/form-data; boundary=${boundary}`, body: body() }
}
