/**
 * Reads XML parts of Office files with `saxes`, in chunks. Entities that a document defines are
 * never expanded, because a document type declaration is refused.
 */
import { type SaxesAttributePlain, SaxesParser } from 'saxes'
import { DocumentFault } from './fault.ts'

/** Maximum depth of nested elements. */
const MAX_DEPTH = 256
/**
 * Maximum number of attributes of an element. A much larger object would need a block of memory that
 * ends the process instead of the thread.
 */
const MAX_ATTRIBUTES = 1000
/** Bytes that are parsed at a time. */
const CHUNK_BYTES = 65_536

/** The attributes of an element, by local name. */
type Attributes = Readonly<Record<string, string | undefined>>
/** Callbacks for the content of a part, in document order. Names have no namespace prefix. */
export interface XmlHandler {
  open?(name: string, attributes: Attributes): void
  /** @param position the index after the end tag in the text of the part, in UTF-16 code units. */
  close?(name: string, position: number): void
  /** Receives the text between two tags, possibly in several chunks. */
  text?(text: string): void
  /** Called for each comment and each processing instruction. */
  ignored?(): void
  /** Returns true if the rest of the part is not needed. Called after each chunk of input. */
  done?(): boolean
}

const localName = (name: string): string => name.slice(name.indexOf(':') + 1)

/**
 * Parses a part.
 * @param part name of the part, for messages.
 * @throws {DocumentFault} when the part is not well-formed or is nested too deeply.
 */
export function readXml(bytes: Uint8Array, part: string, handler: XmlHandler): void {
  const parser = new SaxesParser({ position: false })
  const bad = (why: string) => new DocumentFault(`The part ${part} of the file ${why}.`)
  let depth = 0
  let attributes: Record<string, string> = {}
  let count = 0
  parser.on('error', () => {
    throw bad('is not well-formed XML; the file is damaged. Save it again, and upload it again')
  })
  parser.on('doctype', () => {
    throw bad('has a document type declaration, which Office files never have')
  })
  parser.on('attribute', ({ name, value }: SaxesAttributePlain) => {
    if (++count > MAX_ATTRIBUTES)
      throw bad(`has an element with more than ${MAX_ATTRIBUTES} attributes`)
    const local = localName(name)
    // `r:id`, the id of a relationship, takes precedence over `id`.
    if (local !== name || attributes[local] === undefined) attributes[local] = value
  })
  parser.on('opentag', ({ name }) => {
    if (++depth > MAX_DEPTH) throw bad(`is nested more than ${MAX_DEPTH} levels deep`)
    const found = attributes
    attributes = {}
    count = 0
    handler.open?.(localName(name), found)
  })
  parser.on('closetag', ({ name }) => {
    depth--
    handler.close?.(localName(name), parser.position)
  })
  const { text = () => {}, ignored = () => {} } = handler
  parser.on('text', text)
  parser.on('cdata', text)
  parser.on('comment', ignored)
  parser.on('processinginstruction', ignored)
  const decoder = new TextDecoder()
  for (let at = 0; at < bytes.length; at += CHUNK_BYTES) {
    parser.write(decoder.decode(bytes.subarray(at, at + CHUNK_BYTES), { stream: true }))
    if (handler.done?.()) return
  }
  parser.write(decoder.decode())
  parser.close()
}
