/** Routes of the pages for runs. */
import { callEarly } from '../api/client.ts'
import { listInput } from '../pages/runs/list/filters.ts'
import { shellText as text } from '../shell/text.ts'
import type { Route } from './route.ts'

const P = '/p/:project/runs'
const permission = 'project.view'
export const runsRoutes: readonly Route[] = [
  {
    path: P,
    load: () => import('../pages/runs/list/list.tsx'),
    early: ({ project = '' }, query) => callEarly('run.list', listInput(project, query)),
    permission,
    entry: { group: text.groupWork, label: text.runs, icon: 'runs', keys: 'g r' },
  },
  // This route must precede the page of a run, whose pattern also matches.
  { path: `${P}/compare`, load: () => import('../pages/runs/compare/compare.tsx'), permission },
  {
    path: `${P}/:id`,
    load: () => import('../pages/runs/run/run.tsx'),
    early: ({ project = '', id = '' }) => {
      callEarly('run.get', { project, id })
      callEarly('run.steps', { id })
    },
    permission,
  },
]
