/**
 * Routes of the home page and the pages for workers, webhooks, blueprints, nodes and the projects
 * of the organization.
 */
import { callEarly } from '../api/client.ts'
import { overviewInput, recentInput } from '../pages/home/first.ts'
import { shellText as text } from '../shell/text.ts'
import type { Route } from './route.ts'

export const operateRoutes: readonly Route[] = [
  {
    path: '/p/:project',
    load: () => import('../pages/home/home.tsx'),
    early: ({ project = '' }) => {
      callEarly('overview.get', overviewInput(project))
      callEarly('run.list', recentInput(project))
    },
    permission: 'project.view',
    entry: { group: text.groupWork, label: text.home, icon: 'home', keys: 'g h' },
  },
  {
    path: '/p/:project/workers',
    load: () => import('../pages/workers/workers.tsx'),
    permission: 'project.view',
    entry: { group: text.groupOperate, label: text.workers, icon: 'workers', keys: 'g w' },
  },
  {
    path: '/p/:project/webhooks',
    load: () => import('../pages/webhooks/webhooks.tsx'),
    permission: 'project.view',
    entry: { group: text.groupOperate, label: text.webhooks, icon: 'webhooks' },
  },
  {
    path: '/p/:project/webhooks/:id',
    load: () => import('../pages/webhooks/webhook.tsx'),
    permission: 'project.view',
  },
  {
    path: '/p/:project/blueprints',
    load: () => import('../pages/blueprints/blueprints.tsx'),
    permission: 'project.view',
    entry: { group: text.groupOperate, label: text.blueprints, icon: 'blueprints' },
  },
  {
    path: '/p/:project/blueprints/apply',
    load: () => import('../pages/blueprints/apply.tsx'),
    permission: 'project.edit',
  },
  {
    path: '/p/:project/blueprints/view',
    load: () => import('../pages/blueprints/blueprint.tsx'),
    permission: 'project.view',
  },
  {
    path: '/organization/projects',
    load: () => import('../pages/organization/projects.tsx'),
    entry: { group: text.groupOrganization, label: text.organizationProjects, icon: 'projects' },
  },
  {
    path: '/organization/cluster',
    load: () => import('../pages/organization/cluster.tsx'),
    permission: 'organization.admin',
    entry: { group: text.groupOrganization, label: text.cluster, icon: 'cluster' },
  },
]
