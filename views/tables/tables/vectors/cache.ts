/**
 * A cache of vectors by the hash of their model and text, in a file next to the view's file. The
 * file survives a rebuild of the view, so the rebuilt view does not request the same embeddings
 * again. The file may be lost or damaged. Its vectors are then requested again. When the file
 * exceeds its maximum size, the oldest tenth of its entries is deleted.
 */
import { closeSync, openSync, rmSync } from 'node:fs'
import Database from 'better-sqlite3'
import { isDamagedFile } from '../../../files/file.ts'

/** Default maximum size in bytes: about 600,000 vectors of 384 dimensions. */
const MAX_BYTES = 1_073_741_824
/** Number of insertions after which the size is checked. */
const CHECKED_EVERY = 1000

export class VectorCache {
  readonly #db: Database.Database
  readonly #max: number
  readonly #find: Database.Statement<[Uint8Array], { vector: Buffer }>
  readonly #insert: Database.Statement<[Uint8Array, Uint8Array]>
  #inserted = 0
  private constructor(db: Database.Database, max: number) {
    this.#db = db
    this.#max = max
    this.#find = db.prepare('SELECT vector FROM vectors WHERE hash = ?')
    this.#insert = db.prepare(
      `INSERT INTO vectors (hash, vector) VALUES (?, ?)
       ON CONFLICT (hash) DO UPDATE SET vector = excluded.vector`,
    )
  }
  /**
   * Opens or creates the file, and replaces a damaged file. With `:memory:`, the cache is kept in
   * memory.
   * @throws other errors of SQLite.
   */
  static open(file: string, max = MAX_BYTES): VectorCache {
    for (const again of [true, false]) {
      if (file !== ':memory:') closeSync(openSync(file, 'a', 0o600))
      const db = new Database(file)
      try {
        db.pragma('journal_mode = WAL')
        db.pragma('synchronous = NORMAL')
        db.exec(`CREATE TABLE IF NOT EXISTS vectors (
          n INTEGER PRIMARY KEY AUTOINCREMENT, hash BLOB NOT NULL UNIQUE, vector BLOB NOT NULL)`)
        return new VectorCache(db, max)
      } catch (error) {
        db.close()
        if (!isDamagedFile(error) || !again) throw error
        for (const suffix of ['', '-wal', '-shm']) rmSync(`${file}${suffix}`, { force: true })
      }
    }
    throw new Error(`vectors: ${file} cannot be recreated`)
  }
  get(hash: Uint8Array): Uint8Array | undefined {
    return this.#find.get(hash)?.vector
  }
  /**
   * Adds or replaces vectors in one transaction, and deletes the oldest vectors if the file has
   * become too large.
   */
  put(entries: readonly { readonly hash: Uint8Array; readonly vector: Uint8Array }[]): void {
    this.#db.transaction(() => {
      for (const { hash, vector } of entries) this.#insert.run(hash, vector)
    })()
    this.#inserted += entries.length
    if (this.#inserted < CHECKED_EVERY) return
    this.#inserted = 0
    const shrink = this.#db.prepare(
      'DELETE FROM vectors WHERE n <= (SELECT min(n) + (max(n) - min(n)) / 10 FROM vectors)',
    )
    while (this.#bytes() > this.#max && shrink.run().changes > 0);
  }
  close(): void {
    this.#db.close()
  }
  #bytes(): number {
    const read = (name: string) => Number(this.#db.pragma(name, { simple: true }))
    return (read('page_count') - read('freelist_count')) * read('page_size')
  }
}
