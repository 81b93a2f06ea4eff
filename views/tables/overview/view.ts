/**
 * The view of the overview. Its tables change together with the tables of runs (`runs/runs.ts`,
 * `runs/run-row.ts`), so this view applies no entries itself.
 */
import { sequenceOf } from '../../../protocol/entry.ts'
import { defineView } from '../../define-view.ts'
import { overviewOf } from './overview.ts'

// `minute`: the start of the row's period, in minutes since the Unix epoch. `period`: its length in
// minutes. `took`: a histogram of the durations of runs, in the format of durations.ts.
const tables = `
CREATE TABLE run_counts (
  project INTEGER NOT NULL,
  status TEXT NOT NULL,
  runs INTEGER NOT NULL,
  PRIMARY KEY (project, status)
) WITHOUT ROWID;
CREATE TABLE run_flow (
  project INTEGER NOT NULL,
  period INTEGER NOT NULL,
  minute INTEGER NOT NULL,
  started INTEGER NOT NULL,
  completed INTEGER NOT NULL,
  failed INTEGER NOT NULL,
  cancelled INTEGER NOT NULL,
  took TEXT NOT NULL,
  failures TEXT,
  PRIMARY KEY (project, period, minute)
);
`

export const overview = defineView({
  kinds: {},
  tables,
  queries: {
    'overview.get': ({ store, project, now }, input) => overviewOf(store, project, input, now),
    view_position: ({ current }) => ({ sequence: sequenceOf(current) }),
  },
})
