// The mark of a class: a colour and a shape that stay with it, the same on every page (see marks.css and pages.mark).
import { make } from "/static/elements.js";

const COLOURS = 8;
const SHAPES = 4;

/** @param {number} id of a class */
export const markOf = (id) => `k${id % COLOURS} m${Math.floor(id / COLOURS) % SHAPES}`;

/** @param {number} id of a class */
export const mark = (id) => make("i", undefined, `mark ${markOf(id)}`);
