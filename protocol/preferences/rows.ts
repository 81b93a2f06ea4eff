/**
 * The rows for the caller's own preferences and for saved views. The schemas are in `schema.ts`.
 */
import { Closed, pageOf, paging } from '../common.ts'
import { command, query } from '../contract.ts'
import {
  CreateSavedView,
  checkPreferences,
  checkSavedView,
  ListSavedViews,
  Preferences,
  SavedView,
  SavePreferences,
  UpdateSavedView,
} from './schema.ts'

const P = '/projects/:project'
const V = `${P}/saved-views`
const tag = 'preferences'
const views = { kind: 'saved_views' } as const

export const preferences = {
  'me.preferences': query(`GET ${P}/me/preferences`, {
    summary: 'Preferences of the caller in the project',
    answeredBy: 'gateway',
    tag,
    permission: 'authenticated',
    reply: Preferences,
  }),
  'me.save_preferences': command(`PUT ${P}/me/preferences`, {
    summary: 'Replace the preferences of the caller in the project',
    cliExample: '--preferences \'{"theme":"dark"}\' --expected-version 0',
    tag,
    permission: 'authenticated',
    to: { kind: 'preferences', found: 'principal' },
    body: SavePreferences,
    check: checkPreferences,
    reply: Preferences,
    errors: ['not_found', 'conflict'],
  }),
  'saved_view.list': query(`GET ${V}`, {
    summary: 'Shared views of the project and private views of the caller, newest first',
    answeredBy: 'gateway',
    tag,
    permission: 'project.view',
    query: Closed({ ...ListSavedViews, ...paging }),
    reply: pageOf(SavedView),
  }),
  'saved_view.create': command(`POST ${V}`, {
    summary: 'Save a filter of a list under a name',
    cliExample: '--name "Failed today" --list runs --filter \'{"status":["failed"]}\'',
    tag,
    permission: 'project.view',
    to: views,
    body: CreateSavedView,
    check: checkSavedView,
    reply: SavedView,
    status: 201,
    errors: ['conflict', 'permission_denied'],
  }),
  'saved_view.get': query(`GET ${V}/:id`, {
    summary: 'One saved view',
    answeredBy: 'gateway',
    tag,
    permission: 'project.view',
    reply: SavedView,
    errors: ['not_found'],
  }),
  'saved_view.update': command(`PATCH ${V}/:id`, {
    summary: 'Change a saved view of the caller, or a shared one',
    tag,
    permission: 'project.view',
    to: views,
    body: UpdateSavedView,
    check: checkSavedView,
    reply: SavedView,
    errors: ['not_found', 'conflict', 'permission_denied'],
  }),
  'saved_view.delete': command(`DELETE ${V}/:id`, {
    summary: 'Delete a saved view of the caller, or a shared one',
    tag,
    permission: 'project.view',
    to: views,
    status: 204,
    errors: ['not_found', 'permission_denied'],
  }),
} as const
