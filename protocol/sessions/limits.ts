/**
 * Limits of sessions. Lengths are in characters unless stated otherwise; `metadata` is in bytes as
 * JSON.
 */
export const limits = {
  /** Size in bytes of one inline image or document after decoding. */
  inline: 262_144,
  /**
   * Application context: number of items, length of a name, size in bytes of one item and of all
   * items, and number of names that a session stores. That number is limited because the values of
   * all stored names are written in one commit after a compaction.
   */
  context: { items: 8, name: 64, content: 8192, total: 16_384, names: 100 },
  /** Size of an output schema in bytes. */
  output_schema: 32_768,
  nudge: 32_768,
  key: 255,
  session_key: 512,
  title: 512,
  /** Number of rows in one append. */
  append: 100,
  /** Number of blocks in one message. */
  blocks: 200,
  metadata: 16_384,
  /**
   * Number of equal tool calls in one turn, unless the definition of the turn sets another limit.
   */
  repeats: 3,
  /** Number of generations in one turn. */
  generations: 100,
  /** Number of tool calls in one segment. */
  calls: 64,
  /** Number of idempotency keys of turns that a session stores. The oldest are dropped first. */
  keys: 5000,
  /** Number of idempotency keys of nudges that a session stores. The oldest are dropped first. */
  nudge_keys: 1000,
  /** Number of tool use ids that a session stores. The oldest are dropped first. */
  known_calls: 1000,
  /** Number of turns that have not ended, plus number of pending nudges. */
  turns: 50,
  /**
   * Limits of the window, in rows and in characters of their content. They apply when compaction
   * does not keep the window smaller, and correspond roughly to the capacity of the largest models.
   */
  window: { rows: 2000, size: 4_194_304 },
  /** Duration of a compaction in milliseconds. */
  compaction: 30_000,
  /** Length of the summary of a compaction. Only the end of a longer summary is kept. */
  summary: 262_144,
  /**
   * Total length of all results in one row, including their tool use ids. In a stream, one
   * character takes up to six bytes of a line, and clients read lines of less than 8 MiB. The
   * answer of a model needs no separate limit, because the result of every job is limited in bytes.
   */
  results: 1_200_000,
  /** Length of one error result. */
  fault: 65_536,
  /**
   * Length of the uncommitted output that previews show. Each chunk counts for slightly more than
   * its length, because it may need a separate block.
   */
  preview: 1_200_000,
  /**
   * Limits of files. `name` and `key`: length of a name and of an idempotency key. `text`: size of
   * a text file in bytes. `bytes`: size of any other file in bytes. `body`: size of an upload with
   * its encoding in bytes. `pages`: number of pages of a PDF. `most`: number of files of one
   * session. `erased`: number of erased files that a session stores. `awaited`: time in
   * milliseconds until an unfinished upload is abandoned.
   */
  file: {
    name: 256,
    key: 255,
    text: 102_400,
    bytes: 5_242_880,
    body: 7_340_032,
    pages: 50,
    most: 200,
    erased: 1000,
    awaited: 600_000,
  },
  /** Total size in bytes of all files that are shown to a model in one request. */
  shown: 20_971_520,
  /** Number of attempts of a generation, and of a call of a repeatable action. */
  attempts: 3,
} as const
