/** The view of semantic and hybrid searches, with the vectors of rows. */
import { defineView } from '../../../define-view.ts'
import { applyVectors } from './apply.ts'
import { deleteSomeVectors, hasDropped, vectorTables } from './indexes.ts'
import { searchSemantically } from './search.ts'

/** The view must follow the view of tables, whose rows it reads. */
export const tableVectors = defineView({
  kinds: { table: applyVectors },
  tables: vectorTables,
  upkeep: { isDue: hasDropped, perform: deleteSomeVectors },
  queries: {
    table_semantic: ({ store, project, now }, input) =>
      searchSemantically(store, project, now, input),
  },
})
