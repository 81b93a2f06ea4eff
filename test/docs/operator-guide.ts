/** The guide for operators: the entry page docs/operations.md and the pages in docs/operations/. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const docs = join(import.meta.dirname, '../../docs')

export const operatorGuide = (): string =>
  [
    'operations.md',
    ...readdirSync(join(docs, 'operations')).map((name) => join('operations', name)),
  ]
    .map((name) => readFileSync(join(docs, name), 'utf8'))
    .join('\n')
